//! Long data, which is moved from memory to memory.
//!
//! | | the process of the PE that gets or puts | the process that has the memory |
//! | --- | --- | --- |
//! | get | pulls, then sends `LongGet` | pushes, or sends `Refused` if the memory does not exist |
//! | put | sends `LongPut`, then pushes | pulls; later packets of the same process wait |
//!
//! The memory of an exposure, or of a caller, belongs to a transfer until the transfer is done: a
//! call waits for its transfers before it returns, even if the job has failed. As long as the
//! processes serve each other, each push is answered by a pull, and each pull by a push or a
//! refusal, even after a failure.

use std::collections::{HashSet, VecDeque};

use consort_fabric::Rank;

use super::{
    packet::FarMemory,
    transport::{Frame, TAGS, Transfer},
};

/// A get of at least this many bytes is a transfer.
pub(super) const LONG_GET: usize = 4 << 10;
/// A put of at least this many bytes is a transfer. Below this, a copy costs less than another
/// message.
pub(super) const LONG_PUT: usize = 16 << 10;
/// The maximum number of spare buffers.
const MOST_SPARE: usize = 8;

/// A pull for a get of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingGet {
    pub(super) process: u32,
    pub(super) tag: u32,
    pub(super) transfer: Transfer,
}

/// A transfer by which another process reads or writes memory of this process.
pub(super) struct ActiveTransfer {
    pub(super) transfer: Transfer,
    pub(super) place: FarMemory,
    /// The memory for data that is pulled but not used.
    pub(super) _kept: Vec<u64>,
}

/// The data that has arrived from a process.
#[derive(Default)]
pub(super) struct Inbound {
    pub(super) pulls: Vec<ActiveTransfer>,
    /// Frames. The first has been delivered up to a word.
    pub(super) frames: VecDeque<(Frame, usize)>,
}

pub(super) struct Transfers {
    /// The numbers of gets and puts that have been given tags, by process.
    tagged: Vec<[u32; 2]>,
    pub(super) pushes: VecDeque<ActiveTransfer>,
    pub(super) inbound: Vec<Inbound>,
    /// The processes from which something has arrived that is not delivered.
    pub(super) stalled: Vec<u32>,
    pub(super) refused: HashSet<(u32, u32)>,
    /// The PEs into whose heaps data has been pulled. They may wait for it.
    pub(super) woken: Vec<Rank>,
    /// Buffers for data that is combined after it has arrived. Their pages have already been
    /// touched.
    spare: Vec<Vec<u64>>,
}

impl Transfers {
    pub(super) fn new(processes: u32) -> Self {
        Self {
            tagged: vec![[0; 2]; processes as usize],
            pushes: VecDeque::new(),
            inbound: (0..processes).map(|_| Inbound::default()).collect(),
            stalled: Vec::new(),
            refused: HashSet::new(),
            woken: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Returns a buffer of `words` words, with unspecified contents.
    pub(super) fn buffer(&mut self, words: usize) -> Vec<u64> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(words, 0);
        buffer
    }

    pub(super) fn recycle(&mut self, buffer: Vec<u64>) {
        if self.spare.len() < MOST_SPARE && buffer.capacity() > 0 {
            self.spare.push(buffer);
        }
    }

    /// Returns the tag of the next get (0) or put (1) of a process's memory. Gets and puts of a
    /// pair of processes can move data in the same direction, so they never have the same tag.
    pub(super) fn tag(&mut self, process: u32, kind: u32) -> u32 {
        let number = &mut self.tagged[process as usize][kind as usize];
        *number = (*number + 1) % (TAGS / 2);
        *number * 2 + kind
    }
}
