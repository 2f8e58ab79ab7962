//! The thread libraries that Consort is compared with.
//!
//! A thread library offers a barrier and shared memory. Broadcast and reduce here are what a
//! programmer writes with these:
//!
//! 1. who has data publishes where it lies: the root for a broadcast, everyone for a reduce;
//! 2. barrier;
//! 3. broadcast: all but the root copy from there; reduce: the root adds up in rank order;
//!    all-reduce: everyone does;
//! 4. barrier, so that nobody changes the data while it is still read.
//!
//! Cost: two barriers, and one copy by all at once or `pes` passes by the root. Nothing is cut
//! into pieces, and nothing overlaps.
//!
//! The unsafe blocks answer to the promise that [`peers`] asks for:
//! (P1) a rank is used by one thread at a time, and only ranks below `pes` are;
//! (P2) all ranks make the same calls in the same order, with the same root and length.
#![expect(unsafe_code, reason = "threads read each other's buffers between two barriers")]

mod barriers;

use barriers::{Barrier, HurdlesBarrier, StdBarrier};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A library's collectives, for threads that call them with their ranks.
pub(crate) trait Peer: Sync {
    /// What the library is called.
    fn name(&self) -> &'static str;

    /// Returns when all have called it.
    fn barrier(&self, rank: u32);

    /// Copies the root's `buffer`, in bytes, into everyone's.
    fn broadcast(&self, rank: u32, root: u32, buffer: &mut [u8]);

    /// Adds everyone's `source`, in rank order, into the root's `target`.
    fn reduce(&self, rank: u32, root: u32, source: &[f64], target: &mut [f64]);

    /// Adds everyone's `source`, in rank order, into everyone's `target`.
    fn all_reduce(&self, rank: u32, source: &[f64], target: &mut [f64]);
}

/// All libraries for teams of `pes` threads: pthread (on Linux), std, hurdles.
///
/// # Safety
/// Each rank is used by one thread at a time, and is below `pes`. On each peer all `pes` ranks
/// make the same calls in the same order, and with the same root and the same lengths.
pub(crate) unsafe fn peers(pes: u32) -> Vec<Box<dyn Peer>> {
    vec![
        #[cfg(target_os = "linux")]
        Box::new(Team::new(pes, barriers::PthreadBarrier::new(pes))),
        Box::new(Team::new(pes, StdBarrier::new(pes as usize))),
        Box::new(Team::new(pes, HurdlesBarrier::new(pes))),
    ]
}

/// The names of all libraries, in the order of [`peers`].
pub(crate) fn names() -> Vec<&'static str> {
    // SAFETY: none of them is used.
    unsafe { peers(1) }.iter().map(|peer| peer.name()).collect()
}

/// Where a rank's data lies, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Published(AtomicPtr<u8>);

/// Threads with a barrier. Made by [`peers`] alone, so that P1 and P2 hold.
struct Team<B> {
    barrier: B,
    published: Box<[Published]>,
}

impl<B: Barrier> Team<B> {
    fn new(pes: u32, barrier: B) -> Team<B> {
        Team { barrier, published: (0..pes).map(|_| Published::default()).collect() }
    }

    fn wait(&self, rank: u32) {
        // SAFETY: P1 is what it asks for.
        unsafe { self.barrier.wait(rank) }
    }

    // Relaxed is enough: the barrier that every caller puts between a publication and its use
    // orders the data that is published, too.
    fn publish(&self, rank: u32, data: *mut u8) {
        self.published[rank as usize].0.store(data, Ordering::Relaxed);
    }
}

impl<B: Barrier> Peer for Team<B> {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn barrier(&self, rank: u32) {
        self.wait(rank);
    }

    fn broadcast(&self, rank: u32, root: u32, buffer: &mut [u8]) {
        if rank == root {
            self.publish(root, buffer.as_mut_ptr());
        }
        self.wait(rank);
        if rank != root {
            let source = self.published[root as usize].0.load(Ordering::Relaxed);
            // SAFETY: by P2 the root has published `buffer.len()` bytes before the barrier above,
            // and keeps them borrowed, unused, until all have reached the one below. `buffer` is
            // this rank's own, so that the two do not overlap.
            unsafe { source.copy_to_nonoverlapping(buffer.as_mut_ptr(), buffer.len()) };
        }
        self.wait(rank);
    }

    fn reduce(&self, rank: u32, root: u32, source: &[f64], target: &mut [f64]) {
        self.add(rank, rank == root, source, target);
    }

    fn all_reduce(&self, rank: u32, source: &[f64], target: &mut [f64]) {
        self.add(rank, true, source, target);
    }
}

impl<B: Barrier> Team<B> {
    /// Adds everyone's `source` into the own `target`, if that is wanted.
    fn add(&self, rank: u32, wants: bool, source: &[f64], target: &mut [f64]) {
        self.publish(rank, source.as_ptr().cast_mut().cast());
        self.wait(rank);
        if wants {
            for (other, theirs) in self.published.iter().enumerate() {
                let theirs = theirs.0.load(Ordering::Relaxed).cast::<f64>();
                // SAFETY: by P2 each rank has published as many doubles before the barrier above
                // as `source` has here, and keeps them borrowed, unchanged, until all have
                // reached the one below.
                let theirs = unsafe { slice::from_raw_parts(theirs, source.len()) };
                if other == 0 {
                    target.copy_from_slice(theirs);
                } else {
                    target.iter_mut().zip(theirs).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        self.wait(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    /// Runs `member` with each peer on 1, 2 and 5 threads: peer, number of threads, rank.
    fn each_team(member: impl Fn(&dyn Peer, u32, u32) + Sync) {
        for pes in [1, 2, 5] {
            // SAFETY: each of the `pes` threads has a rank of its own, and `member` does the same
            // on all of them.
            for peer in unsafe { peers(pes) } {
                let (peer, member) = (&*peer, &member);
                thread::scope(|scope| {
                    for rank in 0..pes {
                        scope.spawn(move || member(peer, pes, rank));
                    }
                });
            }
        }
    }

    #[test]
    fn the_order_is_pthread_std_hurdles() {
        let names = names();
        let all = ["pthread", "std", "hurdles"];
        assert_eq!(names, all[all.len() - names.len()..]);
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_entered() {
        let entered = AtomicU32::new(0);
        each_team(|peer, pes, rank| {
            for round in 1..=200 {
                entered.fetch_add(1, Ordering::Relaxed);
                peer.barrier(rank);
                assert_eq!(entered.load(Ordering::Relaxed), round * pes, "{}", peer.name());
                peer.barrier(rank);
            }
            if rank == 0 {
                entered.store(0, Ordering::Relaxed);
            }
        });
    }

    #[test]
    fn broadcasts_from_every_root() {
        each_team(|peer, pes, rank| {
            for (round, length) in (0_u8..).zip([0, 1, 8, 1000, 70_000]) {
                for root in 0..pes {
                    let sent = round ^ u8::try_from(root).unwrap() ^ 0x55;
                    let mut buffer = vec![if rank == root { sent } else { 0xAA }; length];
                    peer.broadcast(rank, root, &mut buffer);
                    assert_eq!(buffer, vec![sent; length], "{}", peer.name());
                }
            }
        });
    }

    /// Element i of rank r is r + i, so that the sum is pes * i + (0 + 1 + ... + pes - 1).
    #[test]
    fn reduces_to_every_root() {
        each_team(|peer, pes, rank| {
            for length in [0, 1, 3, 5000] {
                let source: Vec<f64> = (0..length).map(|i| f64::from(rank + i)).collect();
                for root in 0..pes {
                    let mut target = vec![-1.0; source.len()];
                    peer.reduce(rank, root, &source, &mut target);
                    let sum = |i| f64::from(pes * i + pes * (pes - 1) / 2);
                    let expected = (0..length).map(|i| if rank == root { sum(i) } else { -1.0 });
                    assert!(expected.eq(target), "{} of {length}", peer.name());
                }
            }
        });
    }
}
