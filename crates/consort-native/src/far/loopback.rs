//! A transport between parts of one process that delays frames at random. For tests of far PEs, and
//! of programs that will run on several machines.
//!
//! A frame becomes due after its receiver has looked for frames a number of times; the number is
//! drawn from a seed. Among the senders whose next frame is due, the receiver draws one. So frames
//! of different pairs overtake each other, and frames of one pair keep their order.

#![expect(unsafe_code, reason = "copies between regions that their users keep valid")]

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use consort_fabric::splitmix64;

use super::transport::{Frame, Transfer, TransferBuffer, Transport, TransportError};
use crate::memory::region::Memory;

/// The maximum number of a receiver's looks before a frame is due.
const MOST_LOOKS: u64 = 4;

/// Data in flight, by sender, receiver and tag.
type Pushed = HashMap<(u32, u32, u32), VecDeque<Vec<u8>>>;

/// Frames in flight, by sender and receiver.
struct Network {
    processes: u32,
    pairs: Vec<Mutex<VecDeque<DelayedFrame>>>,
    /// The data that was pushed and has not been pulled yet.
    pushed: Mutex<Pushed>,
    /// How often each process has found nothing.
    looks: Vec<AtomicU64>,
    closed: Vec<AtomicBool>,
}

/// A frame, and the number of the receiver's looks after which it is due.
struct DelayedFrame {
    frame: Frame,
    due: u64,
}

/// One process's end of a loopback.
pub struct Loopback {
    network: Arc<Network>,
    rank: u32,
    random: u64,
    pulls: HashMap<Transfer, Pull>,
    /// The transfers that have not been sent yet, in order.
    pushes: VecDeque<(Transfer, Push)>,
    next: Transfer,
}

/// A transfer from this process that is not complete.
struct Push {
    to: u32,
    tag: u32,
    source: TransferBuffer,
    /// The number of looks before it is sent.
    delay: u64,
}

/// A transfer to this process that is not complete.
struct Pull {
    from: u32,
    tag: u32,
    target: TransferBuffer,
    /// The number of looks at it that find nothing.
    delay: u64,
}

impl Loopback {
    /// Creates the ends of a network between `processes` processes. Delays are drawn from a seed.
    #[must_use]
    pub fn ends(processes: u32, seed: u64) -> Vec<Self> {
        let count = processes as usize;
        let network = Arc::new(Network {
            processes,
            pairs: (0..count * count).map(|_| Mutex::default()).collect(),
            pushed: Mutex::default(),
            looks: (0..count).map(|_| AtomicU64::new(0)).collect(),
            closed: (0..count).map(|_| AtomicBool::new(false)).collect(),
        });
        let end = |rank| Self {
            network: Arc::clone(&network),
            rank,
            random: seed << 8 ^ u64::from(rank),
            pulls: HashMap::new(),
            pushes: VecDeque::new(),
            next: 0,
        };
        (0..processes).map(end).collect()
    }

    fn draw(&mut self, below: u64) -> u64 {
        splitmix64(&mut self.random) % below
    }

    /// Returns the frames in flight from one process to another.
    fn pair(&self, from: u32, to: u32) -> MutexGuard<'_, VecDeque<DelayedFrame>> {
        let at = from * self.network.processes + to;
        self.network.pairs[at as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looks(&self, process: u32) -> &AtomicU64 {
        &self.network.looks[process as usize]
    }

    fn pushed(&self) -> MutexGuard<'_, Pushed> {
        self.network.pushed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the pushes that are due.
    fn send_pushes(&mut self) {
        while let Some((_, push)) = self.pushes.front_mut() {
            if push.delay > 0 {
                push.delay -= 1;
                return;
            }
            let Push { to, tag, source, .. } = *push;
            let mut bytes = vec![0; source.bytes()];
            Memory::private(bytes.as_mut_ptr(), bytes.len()).copy_from(source.0);
            self.pushed().entry((self.rank, to, tag)).or_default().push_back(bytes);
            self.pushes.pop_front();
        }
    }

    fn number(&mut self) -> Transfer {
        self.next += 1;
        self.next
    }

    /// Returns whether the next frame of a sender is due.
    fn is_due(&self, from: u32) -> bool {
        let looks = self.looks(self.rank).load(Relaxed);
        self.pair(from, self.rank).front().is_some_and(|late| late.due <= looks)
    }
}

impl Transport for Loopback {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn processes(&self) -> u32 {
        self.network.processes
    }

    fn send(&mut self, to: u32, frame: Frame) -> Result<(), TransportError> {
        // A process that has closed knows that all have ended, and needs nothing more.
        if !self.network.closed[to as usize].load(Relaxed) {
            let delay = self.draw(MOST_LOOKS + 1);
            let due = self.looks(to).load(Relaxed) + delay;
            self.pair(self.rank, to).push_back(DelayedFrame { frame, due });
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(u32, Frame)>, TransportError> {
        self.send_pushes();
        let due: Vec<u32> = (0..self.processes()).filter(|&from| self.is_due(from)).collect();
        if due.is_empty() {
            self.looks(self.rank).fetch_add(1, Relaxed);
            return Ok(None);
        }
        let drawn = if due.len() == 1 { 0 } else { self.draw(due.len() as u64) };
        let from = due[usize::try_from(drawn).unwrap_or(0)];
        let late = self.pair(from, self.rank).pop_front();
        Ok(late.map(|DelayedFrame { frame, .. }| (from, frame)))
    }

    unsafe fn push(
        &mut self,
        to: u32,
        tag: u32,
        source: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        let (transfer, delay) = (self.number(), self.draw(MOST_LOOKS + 1));
        self.pushes.push_back((transfer, Push { to, tag, source, delay }));
        Ok(transfer)
    }

    unsafe fn pull(
        &mut self,
        from: u32,
        tag: u32,
        target: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        let (transfer, delay) = (self.number(), self.draw(MOST_LOOKS + 1));
        self.pulls.insert(transfer, Pull { from, tag, target, delay });
        Ok(transfer)
    }

    fn is_done(&mut self, transfer: Transfer) -> Result<bool, TransportError> {
        self.send_pushes();
        if self.pushes.iter().any(|(push, _)| *push == transfer) {
            return Ok(false);
        }
        let Some(pull) = self.pulls.get_mut(&transfer) else { return Ok(true) };
        if pull.delay > 0 {
            pull.delay -= 1;
            return Ok(false);
        }
        let Pull { from, tag, target, .. } = *pull;
        let arrived = self.pushed().get_mut(&(from, self.rank, tag)).and_then(VecDeque::pop_front);
        if let Some(mut bytes) = arrived {
            target.0.copy_from(Memory::private(bytes.as_mut_ptr(), bytes.len()));
        } else if !self.network.closed[from as usize].load(Relaxed) {
            return Ok(false);
        }
        self.pulls.remove(&transfer);
        Ok(true)
    }

    fn is_moving(&self) -> bool {
        !self.pulls.is_empty() || !self.pushes.is_empty()
    }

    fn cancel(&mut self, transfer: Transfer) {
        self.pulls.remove(&transfer);
    }

    fn is_flushed(&mut self) -> Result<bool, TransportError> {
        self.send_pushes();
        Ok(self.pushes.is_empty())
    }

    fn close(&mut self, _: Option<&str>) {
        // Their memory may be gone from now on.
        self.pulls.clear();
        self.pushes.clear();
        self.network.closed[self.rank as usize].store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use consort_sandbox::seeds::seeds;

    use super::*;

    /// All frames arrive. Frames of a pair arrive in order, and frames of different pairs do not.
    #[test]
    fn pairs_keep_their_order_and_overtake_each_other() {
        let mut overtaken = 0;
        for seed in seeds(20, 1000, &[]) {
            let mut ends = Loopback::ends(3, seed);
            for number in 0..10 {
                for from in [1, 2] {
                    ends[from].send(0, vec![number]).expect("it is there");
                }
            }
            let mut next = [0; 3];
            for _ in 0..1000 {
                if let Some((from, frame)) = ends[0].receive().expect("it is there") {
                    assert_eq!(frame, [next[from as usize]]);
                    next[from as usize] += 1;
                    overtaken += usize::from(next[1].abs_diff(next[2]) > 1);
                }
            }
            assert_eq!(next, [0, 10, 10]);
        }
        assert!(overtaken > 100, "{overtaken}");
    }
}
