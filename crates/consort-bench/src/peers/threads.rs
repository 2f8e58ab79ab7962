//! The thread libraries with which Consort is compared.
//!
//! A thread library has a barrier and shared memory. The collectives here are those that a
//! programmer would write with these:
//!
//! 1. every thread publishes the address of its data;
//! 2. barrier;
//! 3. every thread copies its blocks from these addresses, or adds them up in rank order;
//! 4. barrier, so that no thread changes data that others still read.
//!
//! Cost: two barriers, and the work of a thread: its copies, or its passes over the data that it
//! adds. There are no chunks, and nothing overlaps.
//!
//! The unsafe blocks rely on the contract of [`peers`]:
//! (P1) each rank is used by one thread at a time, and is below `pes`;
//! (P2) all ranks make the same calls in the same order, with the same root and blocks of
//!      the same length.
#![expect(unsafe_code, reason = "threads read each other's buffers between two barriers")]

use std::{
    slice,
    sync::atomic::{AtomicPtr, Ordering},
};

use consort::tune::Collective;

#[cfg(target_os = "linux")]
use super::barriers::PthreadBarrier;
use super::barriers::{Barrier, HurdlesBarrier, StdBarrier};

/// A library's collectives, for threads that call them with their ranks.
pub trait Peer: Sync {
    /// Returns the name of the library.
    fn name(&self) -> &'static str;

    /// Returns when all threads have called it.
    fn barrier(&self, rank: u32);

    /// Performs `collective` with `source`, which holds the blocks that `rank` contributes, and
    /// `target`, which holds those that it receives. Contributions are added in rank order.
    fn collective(
        &self,
        collective: Collective,
        rank: u32,
        root: u32,
        source: &[f64],
        target: &mut [f64],
    );
}

/// Returns all libraries for teams of `pes` threads: pthread (on Linux), std, hurdles.
///
/// # Safety
/// Each rank is used by one thread at a time, and is below `pes`. On each peer, all `pes` ranks
/// make the same calls in the same order, with the same root and blocks of the same length.
pub unsafe fn peers(pes: u32) -> Vec<Box<dyn Peer>> {
    vec![
        #[cfg(target_os = "linux")]
        Box::new(Team::new("pthread", pes, PthreadBarrier::new(pes))),
        Box::new(Team::new("std", pes, StdBarrier::new(pes as usize))),
        Box::new(Team::new("hurdles", pes, HurdlesBarrier::new(pes))),
    ]
}

/// Returns the names of all libraries, in the order of [`peers`].
pub fn names() -> Vec<&'static str> {
    // SAFETY: no rank of any of them is used.
    unsafe { peers(1) }.iter().map(|peer| peer.name()).collect()
}

/// The address of a rank's data, on its own lines.
#[derive(Default)]
#[repr(align(128))]
struct Published(AtomicPtr<u8>);

/// Threads with a barrier. Only [`peers`] creates it, so P1 and P2 hold.
struct Team<B> {
    name: &'static str,
    barrier: B,
    published: Box<[Published]>,
}

impl<B: Barrier> Team<B> {
    fn new(name: &'static str, pes: u32, barrier: B) -> Team<B> {
        Team { name, barrier, published: (0..pes).map(|_| Published::default()).collect() }
    }

    fn wait(&self, rank: u32) {
        // SAFETY: `wait` requires P1, which holds by the contract of `peers`.
        unsafe { self.barrier.wait(rank) }
    }

    // Relaxed is sufficient: every caller has a barrier between a publication and its use, which
    // orders the published data too.
    fn publish(&self, rank: u32, data: *mut u8) {
        self.published[rank as usize].0.store(data, Ordering::Relaxed);
    }
}

impl<B: Barrier> Peer for Team<B> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn barrier(&self, rank: u32) {
        self.wait(rank);
    }

    fn collective(
        &self,
        collective: Collective,
        rank: u32,
        root: u32,
        source: &[f64],
        target: &mut [f64],
    ) {
        let pes = u32::try_from(self.published.len()).unwrap_or(u32::MAX);
        let received = collective.target_blocks(pes, rank == root) as usize;
        self.publish(rank, source.as_ptr().cast_mut().cast());
        self.wait(rank);
        if let Some(len) = target.len().checked_div(received) {
            let block = |of: u32, index: u32| {
                let theirs = self.published[of as usize].0.load(Ordering::Relaxed).cast::<f64>();
                // SAFETY: by P2 each rank has published all blocks that it contributes, of `len`
                // doubles each, before the barrier above. It keeps them borrowed and unchanged
                // until all ranks have reached the barrier below. `index` is less than their
                // number.
                unsafe { slice::from_raw_parts(theirs.wrapping_add(index as usize * len), len) }
            };
            let mine = if collective == Collective::ReduceScatter { rank } else { 0 };
            match collective.regular() {
                Collective::Barrier => {}
                Collective::Broadcast => target.copy_from_slice(block(root, 0)),
                Collective::Scatter => target.copy_from_slice(block(root, rank)),
                Collective::Gather | Collective::AllGather | Collective::AllToAll => {
                    let exchanges = collective.regular() == Collective::AllToAll;
                    let index = if exchanges { rank } else { 0 };
                    for (of, place) in (0..pes).zip(target.chunks_exact_mut(len.max(1))) {
                        place.copy_from_slice(block(of, index));
                    }
                }
                Collective::Reduce | Collective::AllReduce | Collective::ReduceScatter => {
                    add(target, (0..pes).map(|of| block(of, mine)));
                }
                Collective::Scan => add(target, (0..=rank).map(|of| block(of, 0))),
                Collective::ExclusiveScan => add(target, (0..rank).map(|of| block(of, 0))),
                vector => unreachable!("{vector} is not regular"),
            }
        }
        self.wait(rank);
    }
}

/// Sets the target to the sum of the blocks, if there are any. The first two take one pass.
fn add<'a>(target: &mut [f64], mut blocks: impl Iterator<Item = &'a [f64]>) {
    match (blocks.next(), blocks.next()) {
        (Some(first), Some(second)) => {
            let values = first.iter().zip(second);
            target.iter_mut().zip(values).for_each(|(sum, (a, b))| *sum = a + b);
        }
        (Some(only), None) => target.copy_from_slice(only),
        (None, _) => {}
    }
    for block in blocks {
        target.iter_mut().zip(block).for_each(|(sum, value)| *sum += value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::{Kernel, Rank, Sum, reference};
    use std::sync::atomic::AtomicU32;
    use std::thread;

    /// Runs `member` with each peer on 1, 2 and 5 threads: peer, number of threads, rank.
    fn each_team(member: impl Fn(&dyn Peer, u32, u32) + Sync) {
        for pes in [1, 2, 5] {
            // SAFETY: each of the `pes` threads has its own rank, and `member` makes the same calls
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
    fn no_thread_leaves_a_barrier_before_all_enter() {
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

    /// Each element `i` of each block `b` of each rank `r` is a different number.
    #[test]
    fn results_match_the_oracle() {
        each_team(|peer, pes, rank| {
            for (collective, len) in
                Collective::EVERY.into_iter().flat_map(|c| [0, 1, 3, 700].map(|l| (c, l)))
            {
                for root in 0..pes {
                    let block = |of: u32, index: u32| -> Vec<f64> {
                        (0..len).map(|i| f64::from(1000 * (of + 10 * index) + i)).collect()
                    };
                    let blocks = collective.source_blocks(pes, rank == root);
                    let source: Vec<f64> =
                        (0..blocks).flat_map(|index| block(rank, index)).collect();
                    let received = collective.target_blocks(pes, rank == root) * len;
                    let mut target = vec![-1.0; received as usize];
                    let expected = reference::result(
                        collective,
                        pes,
                        Rank(rank),
                        Rank(root),
                        Some(&Kernel::new::<f64, _>(&Sum)),
                        |of, index| bytemuck::cast_slice(&block(of.0, index)).to_vec(),
                    );
                    let expected = expected.map_or(target.clone(), |bytes| {
                        bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
                    });
                    peer.collective(collective, rank, root, &source, &mut target);
                    assert_eq!(target, expected, "{collective} by {}", peer.name());
                }
            }
        });
    }
}
