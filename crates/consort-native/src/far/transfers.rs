//! Long data, which goes from memory to memory.
//!
//! | | the process of the PE that asks or writes | the process of the memory |
//! | --- | --- | --- |
//! | get | pulls, then tells `Wanted` | pushes, or tells `Refused` if the memory is not there |
//! | put | tells `Coming`, then pushes | pulls; what the same process has sent later waits |
//!
//! The memory of an exposure, or of a caller, is a transfer's until that is done: a call waits for
//! its transfers before it returns, even if the job has failed. Each push is pulled, and each pull
//! is pushed or refused, whatever has failed, as long as the processes serve each other.

use std::collections::{HashSet, VecDeque};

use consort_fabric::Rank;

use super::{
    packet::Place,
    transport::{Frame, TAGS, Transfer},
};

/// A get of so many bytes is a transfer.
pub(crate) const LONG_GET: usize = 4 << 10;
/// A put of so many bytes is a transfer: below, a copy costs less than a message more.
pub(crate) const LONG_PUT: usize = 16 << 10;
/// Spare buffers that are kept, at most.
const MOST_SPARE: usize = 8;

/// A pull that the process has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(super) process: u32,
    pub(super) tag: u32,
    pub(super) transfer: Transfer,
}

/// A transfer by which another process reads or writes memory of this one.
pub(super) struct Moving {
    pub(super) transfer: Transfer,
    pub(super) place: Place,
    /// The memory of what is pulled for nobody.
    pub(super) _kept: Vec<u64>,
}

/// What has come from a process.
#[derive(Default)]
pub(super) struct Inbound {
    pub(super) pulls: Vec<Moving>,
    /// Frames, of which the first is delivered up to a word.
    pub(super) frames: VecDeque<(Frame, usize)>,
}

/// The transfers of a process.
pub(super) struct Transfers {
    /// By process, how many gets and puts have had tags.
    tagged: Vec<[u32; 2]>,
    pub(super) pushes: VecDeque<Moving>,
    pub(super) inbound: Vec<Inbound>,
    /// The processes from which something has come that is not delivered.
    pub(super) stalled: Vec<u32>,
    pub(super) refused: HashSet<(u32, u32)>,
    /// The PEs into whose heaps something has been pulled: they may wait for it.
    pub(super) woken: Vec<Rank>,
    /// Buffers for what is combined when it has come, whose pages are there.
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

    /// A buffer of so many words, with anything in it.
    pub(super) fn buffer(&mut self, words: usize) -> Vec<u64> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(words, 0);
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give_back(&mut self, buffer: Vec<u64>) {
        if self.spare.len() < MOST_SPARE && buffer.capacity() > 0 {
            self.spare.push(buffer);
        }
    }

    /// The tag of the next get (0) or put (1) of a process's memory. Gets and puts of a pair of
    /// processes meet in one direction, and never have the same.
    pub(super) fn tag(&mut self, process: u32, kind: u32) -> u32 {
        let number = &mut self.tagged[process as usize][kind as usize];
        *number = (*number + 1) % (TAGS / 2);
        *number * 2 + kind
    }
}
