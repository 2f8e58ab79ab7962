//! A program: successive calls, each PE's contributions to them, and the oracle for each.

use std::{collections::HashMap, ops::Range};

use consort_fabric::{Collective, Layout, Rank, SyncMode, reference};

use crate::{
    cases::Case,
    data::{BLANK, Random, block, kernel},
};

/// One of a call's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The PE's contribution.
    Source,
    /// The place of its result; in symmetric memory, a broadcast's is the source.
    Target,
}

/// The position of a call's buffers in symmetric memory, and their lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The offset of the source.
    pub source_at: usize,
    /// The length of the source.
    pub source_bytes: usize,
    /// The offset of the target.
    pub target_at: usize,
    /// The length of the target.
    pub target_bytes: usize,
}

/// Successive calls of all PEs of a team.
#[derive(Clone, Debug)]
pub struct Program {
    /// The team's size.
    pub pes: u32,
    /// The seed of the data.
    pub seed: u64,
    /// The calls; the last is a barrier.
    pub cases: Vec<Case>,
    places: Vec<Place>,
    heap_bytes: usize,
    /// For each call with uneven blocks: the ranges of each PE's blocks in source and target.
    uneven: HashMap<(usize, Rank), [Vec<Range<usize>>; 2]>,
}

impl Program {
    /// Creates a program of these calls and a barrier.
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
        Self { pes, seed, cases, places, heap_bytes, uneven: HashMap::new() }
    }

    /// Gives the blocks of vector all-to-alls random lengths, up to the length of the case. They
    /// are as far apart as blocks of equal length. For fabrics that get the layouts of a call.
    #[must_use]
    pub fn uneven(self) -> Self {
        let is_uneven =
            |&call: &usize| self.cases[call].kind.collective == Collective::AllToAllVector;
        let calls = (0..self.cases.len()).filter(is_uneven);
        let ranges = |(call, me): (usize, Rank)| {
            let range = |peer: Rank, from, to| {
                let at = peer.index() * self.cases[call].bytes;
                at..at + self.random_bytes(call, from, to)
            };
            let source = self.everyone().map(|to| range(to, me, to)).collect();
            let target = self.everyone().map(|from| range(from, from, me)).collect();
            ((call, me), [source, target])
        };
        let each = calls.flat_map(|call| self.everyone().map(move |me| (call, me)));
        let uneven = each.map(ranges).collect();
        Self { uneven, ..self }
    }

    /// Returns a random length of a block: often nothing, often the length of the case.
    fn random_bytes(&self, call: usize, from: Rank, to: Rank) -> usize {
        let of_block = u64::from(from.0) << 32 | u64::from(to.0);
        let mut random = Random(self.seed_of(call).wrapping_mul(0x0001_0001) ^ of_block << 8);
        let longest = self.cases[call].bytes;
        match random.below(4) {
            0 => 0,
            1 => longest,
            2 => random.below(longest.min(160) + 1),
            _ => random.below(longest + 1),
        }
    }

    /// Returns the symmetric memory that a PE needs for all calls, in bytes.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Returns the position of a call's buffers in it, if they are symmetric.
    #[must_use]
    pub fn place(&self, call: usize) -> Option<Place> {
        self.cases[call].symmetric.then_some(self.places[call])
    }

    /// Returns all PEs of the team.
    pub fn everyone(&self) -> impl Iterator<Item = Rank> {
        (0..self.pes).map(Rank)
    }

    fn seed_of(&self, call: usize) -> u64 {
        self.seed << 8 | call as u64
    }

    /// Returns whether a PE is late for a call: one PE is, once.
    #[must_use]
    pub fn is_late(&self, call: usize, me: Rank) -> bool {
        let (pes, calls) = (u64::from(self.pes), self.cases.len() as u64);
        let (who, when) = (self.seed % 5 % pes, self.seed / 5 % calls);
        (u64::from(me.0), call as u64) == (pes - 1 - who, when)
    }

    /// Returns whether a PE receives anything in a call.
    #[must_use]
    pub fn receives(&self, call: usize, me: Rank) -> bool {
        let case = &self.cases[call];
        case.kind.collective.target_blocks(self.pes, me == case.root) > 0
    }

    /// Returns the content of a PE's source and target when it enters a call.
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

    /// Returns whether the last PE to enter brings all contributions: no data may move before.
    #[must_use]
    pub fn is_brought(&self, call: usize) -> bool {
        self.cases[call].symmetric && self.cases[call].sync.entry == SyncMode::All
    }

    /// Returns the initial content of a PE's source and target in a call in symmetric memory:
    /// blank, if the last PE to enter brings it.
    #[must_use]
    pub fn at_first(&self, call: usize, me: Rank) -> [Vec<u8>; 2] {
        let mut both = self.before(call, me);
        if self.is_brought(call) {
            both.iter_mut().for_each(|buffer| buffer.fill(BLANK));
        }
        both
    }

    /// Returns a PE's private buffers in a call: empty ones if it contributes or receives nothing.
    #[must_use]
    pub fn private(&self, call: usize, me: Rank) -> [Vec<u8>; 2] {
        let case = &self.cases[call];
        let [source, target] = self.before(call, me);
        let contributes = case.kind.collective.source_blocks(self.pes, me == case.root) > 0;
        let kept = |is_used, buffer| if is_used { buffer } else { Vec::new() };
        [kept(contributes, source), kept(self.receives(call, me), target)]
    }

    /// Returns the layouts of the blocks of a vector variant in a PE's buffers.
    #[must_use]
    pub fn layouts(&self, call: usize, me: Rank) -> Option<[Layout<'_>; 2]> {
        if let Some(ranges) = self.uneven.get(&(call, me)) {
            return Some(
                ranges.each_ref().map(|blocks| Layout::Listed { blocks, element_bytes: 1 }),
            );
        }
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        Layout::of_blocks(kind.collective, self.pes, me == root, bytes)
    }

    /// Returns the final content of a PE's target.
    #[must_use]
    pub fn after(&self, call: usize, me: Rank) -> Vec<u8> {
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        let seed = self.seed_of(call);
        let block = |rank, index| block(seed, rank, index, bytes);
        if let Some([_, ranges]) = self.uneven.get(&(call, me)) {
            let [_, mut target] = self.before(call, me);
            for (from, range) in self.everyone().zip(ranges) {
                let sent = block(from, me.0);
                target[range.clone()].copy_from_slice(&sent[..range.len()]);
            }
            return target;
        }
        let kernel = kernel(bytes, kind.class());
        let result = reference::result(kind.collective, self.pes, me, root, Some(&kernel), block);
        result.unwrap_or_else(|| {
            let [_, target] = self.before(call, me);
            target
        })
    }
}

/// Returns whether source and target are one buffer in symmetric memory.
fn is_one(case: &Case) -> bool {
    case.kind.collective == Collective::Broadcast
}

/// Returns the largest numbers of blocks of the source and the target of a case on any PE.
fn blocks(case: &Case, pes: u32) -> [usize; 2] {
    let collective = case.kind.collective;
    let target = collective.target_blocks(pes, !is_one(case));
    [collective.source_blocks(pes, true), target].map(|blocks| blocks as usize)
}
