//! A program: calls one after the other, what each PE brings to them, and the oracle for each.

use consort_fabric::{Collective, Layout, Rank, SyncMode, reference};

use crate::{
    cases::Case,
    data::{BLANK, block, kernel},
};

/// One of a call's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What a PE contributes.
    Source,
    /// Where its result goes; a broadcast's is the source, in symmetric memory.
    Target,
}

/// Where the buffers of a call lie in symmetric memory, and how long they are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the source lies.
    pub source_at: usize,
    /// How long it is.
    pub source_bytes: usize,
    /// Where the target lies.
    pub target_at: usize,
    /// How long it is.
    pub target_bytes: usize,
}

/// Calls that all PEs of a team make, one after the other.
#[derive(Clone, Debug)]
pub struct Program {
    /// The team's size.
    pub pes: u32,
    /// What the data are made of.
    pub seed: u64,
    /// The calls; the last is a barrier.
    pub cases: Vec<Case>,
    places: Vec<Place>,
    heap_bytes: usize,
}

impl Program {
    /// Of these calls and a barrier.
    #[must_use]
    pub fn new(pes: u32, seed: u64, cases: &[Case]) -> Self {
        let mut cases = cases.to_vec();
        cases.push(Case::barrier());
        let mut heap_bytes = 0;
        let mut next = |bytes| {
            let at = heap_bytes;
            heap_bytes += bytes;
            at
        };
        let place = |case: &Case| {
            let bytes = if case.symmetric { case.bytes } else { 0 };
            let [source_bytes, target_bytes] = blocks(case, pes).map(|blocks| blocks * bytes);
            let source_at = next(source_bytes);
            let target_at = if is_one(case) { source_at } else { next(target_bytes) };
            Place { source_at, source_bytes, target_at, target_bytes }
        };
        let places = cases.iter().map(place).collect();
        Self { pes, seed, cases, places, heap_bytes }
    }

    /// Symmetric memory that a PE needs for all calls, in bytes.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Where the buffers of a call lie in it, if they are symmetric.
    #[must_use]
    pub fn place(&self, call: usize) -> Option<Place> {
        self.cases[call].symmetric.then_some(self.places[call])
    }

    /// All PEs of the team.
    pub fn everyone(&self) -> impl Iterator<Item = Rank> {
        (0..self.pes).map(Rank)
    }

    fn seed_of(&self, call: usize) -> u64 {
        self.seed << 8 | call as u64
    }

    /// Whether a PE is late for a call: one is, once.
    #[must_use]
    pub fn is_late(&self, call: usize, me: Rank) -> bool {
        let (pes, calls) = (u64::from(self.pes), self.cases.len() as u64);
        let (who, when) = (self.seed % 5 % pes, self.seed / 5 % calls);
        (u64::from(me.0), call as u64) == (pes - 1 - who, when)
    }

    /// Whether a PE receives anything in a call.
    #[must_use]
    pub fn receives(&self, call: usize, me: Rank) -> bool {
        let case = &self.cases[call];
        case.kind.collective.target_blocks(self.pes, me == case.root) > 0
    }

    /// What a PE has in the source and the target of a call when it enters.
    #[must_use]
    pub fn before(&self, call: usize, me: Rank) -> [Vec<u8>; 2] {
        let case @ &Case { ref kind, bytes, root, .. } = &self.cases[call];
        let contributed = kind.collective.source_blocks(self.pes, me == root);
        let seed = self.seed_of(call);
        let mine: Vec<u8> =
            (0..contributed).flat_map(|index| block(seed, me, index, bytes)).collect();
        if kind.collective == Collective::Broadcast && me == root {
            return [mine.clone(), mine];
        }
        if kind.in_place && self.receives(call, me) {
            return [Vec::new(), mine];
        }
        let [source, target] = blocks(case, self.pes).map(|blocks| vec![BLANK; blocks * bytes]);
        [if contributed > 0 { mine } else { source }, target]
    }

    /// Whether the last to enter a call brings what all contribute: no data may move before.
    #[must_use]
    pub fn is_brought(&self, call: usize) -> bool {
        self.cases[call].symmetric && self.cases[call].sync.entry == SyncMode::All
    }

    /// What a PE has in the source and the target of a call in symmetric memory at first: nothing,
    /// where the last to enter brings it.
    #[must_use]
    pub fn at_first(&self, call: usize, me: Rank) -> [Vec<u8>; 2] {
        let mut both = self.before(call, me);
        if self.is_brought(call) {
            both.iter_mut().for_each(|buffer| buffer.fill(BLANK));
        }
        both
    }

    /// What a PE brings to a call in private buffers: empty ones where it contributes or receives
    /// nothing.
    #[must_use]
    pub fn private(&self, call: usize, me: Rank) -> [Vec<u8>; 2] {
        let case = &self.cases[call];
        let [source, target] = self.before(call, me);
        let contributes = case.kind.collective.source_blocks(self.pes, me == case.root) > 0;
        let kept = |is_used, buffer| if is_used { buffer } else { Vec::new() };
        [kept(contributes, source), kept(self.receives(call, me), target)]
    }

    /// Where the blocks of a call of a vector variant lie in a PE's buffers.
    #[must_use]
    pub fn layouts(&self, call: usize, me: Rank) -> Option<[Layout<'static>; 2]> {
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        Layout::of_blocks(kind.collective, self.pes, me == root, bytes)
    }

    /// What is in a PE's target when all is done.
    #[must_use]
    pub fn after(&self, call: usize, me: Rank) -> Vec<u8> {
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        let seed = self.seed_of(call);
        let block = |rank, index| block(seed, rank, index, bytes);
        let kernel = kernel(bytes, kind.class());
        let result = reference::result(kind.collective, self.pes, me, root, Some(&kernel), block);
        result.unwrap_or_else(|| {
            let [_, target] = self.before(call, me);
            target
        })
    }
}

/// Whether source and target are one buffer in symmetric memory.
fn is_one(case: &Case) -> bool {
    case.kind.collective == Collective::Broadcast
}

/// How many blocks the source and the target of a case have, as long as anyone's.
fn blocks(case: &Case, pes: u32) -> [usize; 2] {
    let collective = case.kind.collective;
    let target = collective.target_blocks(pes, !is_one(case));
    [collective.source_blocks(pes, true), target].map(|blocks| blocks as usize)
}
