//! The oracle: the expected state of every PE after each step, computed by one PE alone, in bytes.
//!
//! It shares no code with the library except some types, such as collectives and ranks. It computes
//! whole buffers, so that it also detects changes outside the result.

use consort::tune::Collective;
use consort_conformance::data::{BLANK, Random};

use super::{
    elements::{Datum, Type, bytes, with_type},
    groups::{Groups, group_of, position},
    program::{Call, Form, Program, Step},
};

/// Returns elements from a seed, as bytes.
pub(super) fn filled(ty: Type, seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    with_type!(ty, T => {
        bytes(&(0..len).map(|_| T::of(random.next_word())).collect::<Vec<_>>())
    })
}

/// Returns the seed of block number `index` of a member's contribution.
fn seed_of(seed: u64, member: usize, index: usize) -> u64 {
    Random(seed ^ (member as u64) << 48 ^ (index as u64) << 32).next_word()
}

fn combined(ty: Type, ordered: bool, left: &[u8], right: &[u8]) -> Vec<u8> {
    if ty.bytes() == 0 {
        return Vec::new();
    }
    with_type!(ty, T => {
        let operator = if ordered { T::composed } else { T::joined };
        let all = left.chunks_exact(size_of::<T>()).zip(right.chunks_exact(size_of::<T>()));
        let read = bytemuck::pod_read_unaligned;
        bytes(&all.map(|(a, b)| operator(read(a), read(b))).collect::<Vec<_>>())
    })
}

/// A call, from the view of one member of a team of `size`.
#[derive(Clone, Copy)]
pub(super) struct Part<'c> {
    pub(super) call: &'c Call,
    pub(super) size: usize,
    pub(super) me: usize,
}

impl Part<'_> {
    pub(super) fn is_root(&self) -> bool {
        self.call.root_of(self.size) == self.me
    }

    fn pes(&self) -> u32 {
        u32::try_from(self.size).expect("few")
    }

    /// Returns the number of blocks that this member contributes.
    pub(super) fn given(&self) -> usize {
        self.call.collective.source_blocks(self.pes(), self.is_root()) as usize
    }

    /// Returns the number of blocks that it receives.
    pub(super) fn received(&self) -> usize {
        self.call.collective.target_blocks(self.pes(), self.is_root()) as usize
    }

    /// Returns its contribution in a call on its own data.
    pub(super) fn source(&self) -> Vec<u8> {
        let Call { ty, seed, len, .. } = *self.call;
        let of = |index| filled(ty, seed_of(seed, self.me, index), len);
        (0..self.given()).flat_map(of).collect()
    }

    /// Returns the number of elements that `giver` sends to `taker`.
    pub(super) fn count(&self, giver: usize, taker: usize) -> usize {
        let Call { collective, seed, len, uneven, .. } = *self.call;
        let index = match collective {
            Collective::GatherVector | Collective::AllGatherVector => 0,
            _ => taker,
        };
        let some = Random(seed_of(!seed, giver, index)).below(len + 1);
        if uneven && collective.is_vector() { some } else { len }
    }

    /// Returns the elements of each block that this member sends, by taker, and receives, by giver.
    pub(super) fn counts(&self) -> [Vec<usize>; 2] {
        let given = (0..self.size).map(|other| self.count(self.me, other)).collect();
        let received = (0..self.size).map(|other| self.count(other, self.me)).collect();
        [given, received]
    }

    /// Writes this member's results to its target. `source` returns a member's source.
    pub(super) fn receive(&self, target: &mut [u8], source: impl Fn(usize) -> Vec<u8>) {
        let Call { collective, ty, len, ordered, .. } = *self.call;
        let bytes = len * ty.bytes();
        let block = |giver: usize, index: usize| source(giver)[index * bytes..][..bytes].to_vec();
        let root = self.call.root_of(self.size);
        if self.received() == 0 {
            return;
        }
        let mut store = |at: usize, from: Vec<u8>, count: usize| {
            let count = count * ty.bytes();
            target[at * bytes..][..count].copy_from_slice(&from[..count]);
        };
        let sum = |members: usize, index: usize| {
            let all = (0..members).map(|giver| block(giver, index));
            all.reduce(|left, right| combined(ty, ordered, &left, &right))
        };
        let count = |giver| self.count(giver, self.me);
        match collective.regular() {
            Collective::Broadcast => store(0, block(root, 0), len),
            Collective::Scatter => store(0, block(root, self.me), count(root)),
            Collective::Gather | Collective::AllGather => {
                (0..self.size).for_each(|giver| store(giver, block(giver, 0), count(giver)));
            }
            Collective::AllToAll => {
                (0..self.size).for_each(|giver| store(giver, block(giver, self.me), count(giver)));
            }
            combining => {
                let (members, index) = match combining {
                    Collective::ReduceScatter => (self.size, self.me),
                    Collective::Scan => (self.me + 1, 0),
                    Collective::ExclusiveScan => (self.me, 0),
                    _ => (self.size, 0),
                };
                if let Some(sum) = sum(members, index) {
                    store(0, sum, len);
                }
            }
        }
    }

    /// Returns the initial content of its own target: bytes that are never contributed.
    pub(super) fn blank(&self) -> Vec<u8> {
        let bytes = self.received() * self.call.len * self.call.ty.bytes();
        let is_new = matches!(self.call.form, Form::Values | Form::Owned | Form::Planned);
        vec![if is_new { 0 } else { BLANK }; bytes]
    }

    /// Returns the result of a call on its own data, if any.
    pub(super) fn result(&self) -> Option<Vec<u8>> {
        let Call { collective, ty, len, form, .. } = *self.call;
        let mut target = self.blank();
        let source = |me| Part { me, ..*self }.source();
        self.receive(&mut target, source);
        if !matches!(form, Form::Values | Form::Owned | Form::Planned) {
            return Some(target);
        }
        if collective == Collective::Broadcast && self.is_root() && form != Form::Values {
            return Some(self.source());
        }
        if self.received() == 0 || (collective == Collective::ExclusiveScan && self.me == 0) {
            return None;
        }
        if !collective.is_vector() {
            return Some(target);
        }
        let [_, counts] = match collective {
            Collective::ScatterVector => {
                let mine = self.count(self.call.root_of(self.size), self.me);
                [Vec::new(), vec![mine]]
            }
            _ => self.counts(),
        };
        let bytes = |elements: usize| elements * ty.bytes();
        if form == Form::Values {
            // One block after the other.
            let block = |(at, count)| &target[bytes(at * len)..][..bytes(count)];
            return Some(counts.into_iter().enumerate().flat_map(block).copied().collect());
        }
        // Up to the end of the last block.
        let end = |(at, count): (usize, usize)| if count == 0 { 0 } else { at * len + count };
        target.truncate(bytes(counts.into_iter().enumerate().map(end).max().unwrap_or(0)));
        Some(target)
    }
}

/// A symmetric block, as all PEs must have it.
pub(super) struct Known {
    pub(super) slot: usize,
    pub(super) ty: Type,
    len: usize,
    is_many: bool,
    /// By rank in the world.
    parts: Vec<Vec<u8>>,
    /// Whether some operation may change it at an unknown time.
    pub(super) in_use: bool,
}

impl Known {
    /// Returns the number of elements of a PE's part in a team of `size`.
    pub(super) fn elements(&self, size: usize) -> usize {
        if self.is_many { self.len * size } else { self.len }
    }
}

/// All PEs' parts of all blocks.
pub(super) struct Oracle<'c> {
    program: &'c Program,
    blocks: Vec<Option<Known>>,
}

impl<'c> Oracle<'c> {
    pub(super) fn new(program: &'c Program) -> Self {
        Self { program, blocks: Vec::new() }
    }

    pub(super) fn block(&self, block: usize) -> Option<&Known> {
        self.blocks.get(block)?.as_ref()
    }

    fn block_mut(&mut self, block: usize) -> &mut Known {
        self.blocks[block].as_mut().expect("a step names a block that there is")
    }

    /// Returns a PE's part of a block.
    pub(super) fn part(&self, block: usize, pe: u32) -> &[u8] {
        &self.block(block).expect("a step names a block that there is").parts[pe as usize]
    }

    /// Returns the data that a PE writes in a refill.
    pub(super) fn refill(&self, block: usize, seed: u64, pe: u32) -> Vec<u8> {
        let known = self.block(block).expect("a step names a block that there is");
        let size = group_of(&self.program.slots[known.slot], pe).map_or(0, Vec::len);
        filled(known.ty, seed_of(seed, pe as usize, 0), known.elements(size))
    }

    fn groups(&self, slot: usize) -> &'c Groups {
        &self.program.slots[slot]
    }

    /// Applies a served step to symmetric memory. A started call has its effect immediately: nobody
    /// looks before it is complete.
    pub(super) fn follow(&mut self, step: &Step) {
        match step {
            Step::Allocate { slot, block, ty, len } => {
                for index in 0..4 {
                    let is_many = index >= 2;
                    let part = |pe| {
                        let size = group_of(self.groups(*slot), pe).map_or(0, Vec::len);
                        let elements = if is_many { *len * size } else { *len };
                        vec![0; elements * ty.bytes()]
                    };
                    let parts = (0..self.program.pes).map(part).collect();
                    let (slot, ty, len) = (*slot, *ty, *len);
                    let known = Known { slot, ty, len, is_many, parts, in_use: false };
                    self.blocks.resize_with(self.blocks.len().max(block + index + 1), || None);
                    self.blocks[block + index] = Some(known);
                }
            }
            Step::Refill { block, seed } => {
                for pe in 0..self.program.pes {
                    let part = self.refill(*block, *seed, pe);
                    self.block_mut(*block).parts[pe as usize] = part;
                }
            }
            Step::Give { block, .. } => self.blocks[*block] = None,
            Step::Call(call) | Step::Start { call, .. } => self.follow_call(call),
            _ => {}
        }
    }

    fn follow_call(&mut self, call: &Call) {
        let Some((from, to)) = call.memory() else { return };
        for group in self.groups(call.slot) {
            let sources: Vec<_> = group.iter().map(|&pe| self.part(from, pe).to_vec()).collect();
            for &pe in group {
                let part = Part { call, size: group.len(), me: position(group, pe) };
                let target = &mut self.block_mut(to).parts[pe as usize];
                part.receive(target, |giver| sources[giver].clone());
            }
        }
        if matches!(call.form, Form::StartMemory { .. }) {
            for block in [from, to] {
                self.block_mut(block).in_use = true;
            }
        }
    }

    /// Records that a nonblocking call is complete.
    pub(super) fn complete(&mut self, call: &Call) {
        if let Some((from, to)) = call.memory() {
            // The memory may have been dropped in the meantime.
            for block in [from, to] {
                if let Some(Some(known)) = self.blocks.get_mut(block) {
                    known.in_use = false;
                }
            }
        }
    }
}
