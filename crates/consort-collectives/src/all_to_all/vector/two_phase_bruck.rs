//! Two-phase Bruck: short blocks of any lengths travel together, after a message with their
//! lengths.
//!
//! Source: Fan, Gilray, Pascucci, Huang, Micinski and Kumar 2022, "Optimizing the Bruck algorithm
//! for non-uniform all-to-all communication", the algorithm two-phase Bruck. The rounds are those
//! of the all-to-all `bruck`, which has no phases that shift all blocks. The paper first agrees on
//! the longest block, which gives the size of its buffers. Here no PE needs to know that length. A
//! block of more than `block_bytes` does not travel with others: its receiver copies it, as in
//! `direct`. The PEs at both ends of a block know its length.
//!
//! Protocol, for the rounds of the all-to-all `bruck`:
//! 1. each PE exposes its long blocks, and copies its own block;
//! 2. in each round, it sends a message with the lengths of the blocks that travel, then their
//!    data, packed. Empty data is not sent. The receiver knows the length of the data from the
//!    first message, so both PEs divide the data into the same chunks (`protocols/stream`);
//! 3. it keeps blocks that travel further in the scratch memory, and unpacks the others;
//! 4. it gets its long blocks, and leaves when its own long blocks are detached.
//!
//! Cost: `(k - 1) log_k P` rounds of two messages, with up to `P / k` blocks each. For short blocks
//! among many PEs.

use consort_fabric::{
    Candidate, Channel, Fabric, MachineModel, Op, Place, Query, Rank, Span, Step,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    all_to_all::bruck::{Packed, packed},
    protocols::{
        exchange::{self, sends_first},
        exposed::others,
        stream::{Chunks, Edge},
        vector_blocks,
    },
};

#[derive(Hash)]
pub struct TwoPhaseBruck;

/// The least number of PEs for which the model chooses this algorithm without knowing lengths. With
/// fewer PEs, long blocks lose more time in simulations than short blocks gain.
const FEWEST_PES: u32 = 64;

/// A length in a message, in bytes. `LONG` if the block does not travel.
type Length = u16;
const LONG: Length = Length::MAX;
const LENGTH_BYTES: usize = size_of::<Length>();

/// The division of the scratch memory: the accumulator has a slot for a block from each distance,
/// and the other half has the lengths and the data of two messages.
#[derive(Clone, Copy, Hash)]
struct Memory {
    slot_bytes: usize,
    lengths_bytes: usize,
    data_bytes: usize,
    /// The longest block that travels.
    longest: usize,
}

/// A message that a PE packs or unpacks.
#[derive(Clone, Copy)]
enum Side {
    Out,
    In,
}

impl Memory {
    /// Divides `bytes` bytes for messages of at most `blocks` blocks. `None` if no block fits.
    fn new(bytes: usize, pes: u32, blocks: usize, wanted: usize) -> Option<Self> {
        let whole_words = |bytes: usize| bytes / 8 * 8;
        let lengths_bytes = blocks.checked_mul(LENGTH_BYTES)?.next_multiple_of(8);
        let data_bytes = whole_words(bytes.checked_sub(2 * lengths_bytes)? / 2);
        let slot_bytes = whole_words(bytes / pes as usize);
        let longest = wanted.min(slot_bytes).min(data_bytes / blocks.max(1));
        (longest > 0).then_some(Self { slot_bytes, lengths_bytes, data_bytes, longest })
    }

    fn slot(&self, distance: u32, bytes: usize) -> Span {
        Span { at: distance as usize * self.slot_bytes, ..Span::accumulator(bytes) }
    }

    fn lengths(&self, side: Side, blocks: usize) -> Span {
        let at = side as usize * self.lengths_bytes;
        Span { at, ..Span::incoming(blocks * LENGTH_BYTES) }
    }

    fn data(&self, side: Side, at: usize, bytes: usize) -> Span {
        let at = 2 * self.lengths_bytes + side as usize * self.data_bytes + at;
        Span { at, ..Span::incoming(bytes) }
    }

    /// Returns the length that a message states for a block of `bytes`.
    fn stated(&self, bytes: usize) -> Length {
        let is_short = bytes <= self.longest;
        Length::try_from(bytes).ok().filter(|_| is_short).unwrap_or(LONG)
    }
}

/// Returns the bytes of a block that travel.
fn carried(stated: Length) -> usize {
    if stated == LONG { 0 } else { usize::from(stated) }
}

/// A block that travels in a round.
#[derive(Clone, Copy, Hash)]
struct Block {
    /// Its total distance.
    distance: u32,
    /// The PE that it goes to, if it is still in this PE's source.
    starts_for: Option<Rank>,
    /// The PE that the block of this distance comes from, if it arrives at this PE.
    arrives_from: Option<Rank>,
}

#[derive(Hash)]
struct Round {
    lengths: Channel,
    sent: Edge,
    received: Edge,
    sends_first: bool,
    blocks: Box<[Block]>,
}

#[derive(Hash)]
pub struct Schedule {
    memory: Memory,
    /// The lines of the inbox for the data of a round.
    room: u32,
    rounds: Box<[Round]>,
    steps: Step,
}

fn schedule(setting: &Setting, radix: u32, block_bytes: usize) -> Option<Schedule> {
    let (rank, pes) = (setting.rank, setting.call.pes);
    let all = packed(pes, radix);
    let rounds = u32::try_from(all.len()).ok()?;
    let most = all.iter().map(|round| round.blocks.len()).max().unwrap_or(0);
    let memory = Memory::new(setting.capabilities.scratch_bytes, pes, most, block_bytes)?;
    // In each round: a signal that a chunk is taken, the lengths, and the data.
    let lengths_lines = u32::try_from(Channel::count_for(most * LENGTH_BYTES)).ok()?;
    let room = (setting.lines() / rounds.max(1)).checked_sub(1 + lengths_lines)?;
    let steps = Chunks::new(most * memory.longest, 1, usize::MAX, room)?.count();
    let before = |distance: u32| rank.plus((pes - distance) as usize, pes as usize);
    let after = |distance: u32| rank.plus(distance as usize, pes as usize);
    let round = |(index, Packed { far, weight, blocks }): (u32, &Packed)| {
        let first = index * (1 + lengths_lines + room);
        let [taken, lengths, data] =
            [0, 1, 1 + lengths_lines].map(|line| setting.channel(first + line));
        let (to, from) = (after(*far), before(*far));
        let block = |&distance: &u32| Block {
            distance,
            starts_for: distance.is_multiple_of(*weight).then(|| after(distance)),
            arrives_from: (distance - far < *weight).then(|| before(distance)),
        };
        Round {
            lengths,
            sent: Edge { peer: to, data, taken },
            received: Edge { peer: from, data, taken },
            sends_first: setting.capabilities.buffered || sends_first(rank, to, from, pes),
            blocks: blocks.iter().map(block).collect(),
        }
    };
    let rounds = (0..).zip(&all).map(round).collect();
    Some(Schedule { memory, room, rounds, steps })
}

impl Schedule {
    /// Divides `bytes` bytes of data. Empty data has no chunks.
    fn chunks(&self, bytes: usize) -> Option<Chunks> {
        let chunks = || Chunks::new(bytes, 1, usize::MAX, self.room);
        if bytes == 0 { None } else { chunks() }
    }

    /// Sends and receives the messages of a round, chunk by chunk. `stated` has the lengths of the
    /// blocks at this PE, by their total distances; `message` is memory for the lengths of a
    /// message.
    #[inline(always)]
    async fn exchange<F: Fabric>(
        &self,
        f: &F,
        round: &Round,
        stated: &mut [Length],
        message: &mut Vec<u8>,
    ) -> Op {
        let Self { memory, .. } = self;
        let outgoing = self.chunks(self.pack(f, round, stated, message).await?);
        let mut incoming = None;
        let mut index = 0;
        loop {
            for is_send in [round.sends_first, !round.sends_first] {
                let lengths = |side| memory.lengths(side, round.blocks.len());
                if index == 0 && is_send {
                    f.send(round.sent.peer, round.lengths, 0, lengths(Side::Out)).await?;
                }
                if index == 0 && !is_send {
                    f.receive(round.lengths, 0, lengths(Side::In)).await?;
                    f.load(lengths(Side::In), message).await?;
                    incoming = self.chunks(read(round, message, stated));
                }
                match if is_send { &outgoing } else { &incoming } {
                    Some(chunks) if index < chunks.count() && is_send => {
                        self.send(f, &round.sent, chunks, index).await?;
                    }
                    Some(chunks) if index < chunks.count() => {
                        self.receive(f, &round.received, chunks, index).await?;
                    }
                    _ => {}
                }
            }
            index += 1;
            if [&outgoing, &incoming].into_iter().flatten().all(|chunks| index >= chunks.count()) {
                return self.unpack(f, round, stated).await;
            }
        }
    }

    #[inline(always)]
    async fn send<F: Fabric>(&self, f: &F, edge: &Edge, chunks: &Chunks, index: Step) -> Op {
        if let Some(awaited) = chunks.awaits(index) {
            f.wait(edge.taken, awaited).await?;
        }
        let (at, bytes) = chunks.range(index);
        let chunk = self.memory.data(Side::Out, at, bytes);
        f.send(edge.peer, edge.buffer(chunks, index), index, chunk).await
    }

    #[inline(always)]
    async fn receive<F: Fabric>(&self, f: &F, edge: &Edge, chunks: &Chunks, index: Step) -> Op {
        let (at, bytes) = chunks.range(index);
        f.receive(edge.buffer(chunks, index), index, self.memory.data(Side::In, at, bytes)).await?;
        if chunks.is_awaited(index) {
            f.signal(edge.peer, edge.taken, index).await?;
        }
        Ok(())
    }

    /// Packs the lengths and the data that this PE sends. Returns the bytes of the data.
    #[inline(always)]
    async fn pack<F: Fabric>(
        &self,
        f: &F,
        Round { blocks, .. }: &Round,
        stated: &[Length],
        message: &mut Vec<u8>,
    ) -> Op<usize> {
        let Self { memory, .. } = self;
        message.clear();
        let mut total = 0;
        for &Block { distance, starts_for, .. } in blocks {
            let (length, block) = match starts_for {
                Some(to) => {
                    let block = f.vector_block(Place::Source, to.0);
                    (memory.stated(block.bytes), block)
                }
                None => (stated[distance as usize], memory.slot(distance, 0)),
            };
            let bytes = carried(length);
            if bytes > 0 {
                f.copy(memory.data(Side::Out, total, bytes), Span { bytes, ..block }).await?;
            }
            message.extend(length.to_ne_bytes());
            total += bytes;
        }
        f.store(memory.lengths(Side::Out, blocks.len()), message).await?;
        Ok(total)
    }

    /// Unpacks the data that this PE has received.
    #[inline(always)]
    async fn unpack<F: Fabric>(&self, f: &F, round: &Round, stated: &[Length]) -> Op {
        let Self { memory, .. } = self;
        let mut at = 0;
        for &Block { distance, arrives_from, .. } in &round.blocks {
            let length = stated[distance as usize];
            let bytes = carried(length);
            let mut target = memory.slot(distance, bytes);
            if let Some(from) = arrives_from {
                let block = f.vector_block(Place::Target, from.0);
                if length != LONG {
                    f.check_stated_length(from, bytes, block.bytes).await?;
                }
                target = Span { bytes, ..block };
            }
            if bytes > 0 {
                f.copy(target, memory.data(Side::In, at, bytes)).await?;
            }
            at += bytes;
        }
        Ok(())
    }
}

/// Reads the lengths in a message. Returns the bytes of the data that follows.
fn read(Round { blocks, .. }: &Round, message: &[u8], stated: &mut [Length]) -> usize {
    let mut total = 0;
    for (block, bytes) in blocks.iter().zip(message.chunks_exact(LENGTH_BYTES)) {
        let length = bytes.try_into().map_or(LONG, Length::from_ne_bytes);
        stated[block.distance as usize] = length;
        total += carried(length);
    }
    total
}

impl Algorithm for TwoPhaseBruck {
    const NAME: &'static str = "two_phase_bruck";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) },
        Parameter { name: "block_bytes", values: &[128, 1024], range: (1, LONG as u64 - 1) },
    ];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let block_bytes = usize::try_from(Self::parameter(candidate, 1)?).unwrap_or(usize::MAX);
        schedule(setting, radix, block_bytes)
            .ok_or(Self::incapable("the messages do not fit the memory"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.steps.into()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let rounds = packed(query.pes, radix.unwrap_or(2));
        let blocks = || rounds.iter().map(|round| round.blocks.len() as f64);
        let of_short = |bytes: f64| {
            // The message with the lengths; then each block is packed and unpacked.
            let lengths = |count| 2.0 * model.lines_ns(count * LENGTH_BYTES as f64);
            let each = |count| lengths(count) + (2.0 + count) * model.overhead_ns;
            let copied = bytes * (1.0 + 2.0 * blocks().sum::<f64>()) / model.copy_gbps;
            let work = copied + blocks().map(each).sum::<f64>();
            let data = exchange::cost_ns(query, model, blocks().map(|count| (1.0, count * bytes)));
            work * model.pes_a_core(query.pes) + data
        };
        let direct = || vector_blocks::cost_ns(query, f64::from(query.pes) - 1.0, model);
        match (query.bytes, candidate.parameter("block_bytes")) {
            // The query of a program has no length: a mean of short and of long blocks.
            (0, _) if query.pes >= FEWEST_PES => of_short(0.0) + direct() / 2.0,
            (0, _) => f64::INFINITY,
            (bytes, Some(most)) if bytes > most => of_short(0.0) + direct(),
            (bytes, _) => of_short(bytes as f64),
        }
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let is_long =
            |peer: &Rank| f.vector_block(Place::Source, peer.0).bytes > schedule.memory.longest;
        let mut has_exposed = false;
        for peer in others(f.rank(), f.size()).filter(is_long) {
            vector_blocks::expose(f, peer, Place::Source).await?;
            has_exposed = true;
        }
        vector_blocks::copy_own(f).await?;
        let (mut stated, mut message) = (vec![0; f.size() as usize], Vec::new());
        for round in &schedule.rounds {
            schedule.exchange(f, round, &mut stated, &mut message).await?;
        }
        for peer in others(f.rank(), f.size()) {
            let distance = (f.rank().0 + f.size() - peer.0) % f.size();
            if stated[distance as usize] == LONG {
                vector_blocks::get(f, peer).await?;
            }
        }
        if has_exposed { f.await_detached().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Collective, OperatorClass, SyncModes};

    use super::*;
    use crate::all_to_all::vector::Direct;

    #[test]
    fn parts_of_the_memory_do_not_overlap() {
        for (pes, blocks) in [(2, 1), (3, 1), (5, 2), (16, 8), (64, 32), (192, 96)] {
            for bytes in [64, 1000, 16 << 10, 64 << 10] {
                let Some(memory) = Memory::new(bytes, pes, blocks, 128) else {
                    assert!(bytes < 10 * pes as usize, "{bytes} bytes for {pes} PEs");
                    continue;
                };
                let Memory { slot_bytes, data_bytes, longest, .. } = memory;
                assert!((1..=128).contains(&longest) && longest <= slot_bytes);
                assert!(blocks * longest <= data_bytes);
                let ends = |span: Span| [span.at, span.at + span.bytes];
                let spans = [
                    memory.lengths(Side::Out, blocks),
                    memory.lengths(Side::In, blocks),
                    memory.data(Side::Out, 0, data_bytes),
                    memory.data(Side::In, 0, data_bytes),
                ];
                assert!(spans.map(ends).as_flattened().is_sorted(), "{spans:?}");
                assert!(ends(spans[3])[1] <= bytes);
                assert!(ends(memory.slot(pes - 1, slot_bytes))[1] <= bytes);
            }
        }
    }

    #[test]
    fn lengths_beyond_the_longest_block_are_stated_as_long() {
        let memory = Memory::new(64 << 10, 4, 2, 100).expect("it fits");
        assert_eq!([0, 100, 101, 1 << 16].map(|bytes| memory.stated(bytes)), [0, 100, LONG, LONG]);
        assert_eq!([0, 100, LONG].map(carried), [0, 100, 0]);
    }

    /// The query of a program has no length.
    #[test]
    fn model_prefers_rounds_among_many_pes() {
        let prefers_rounds = |pes, bytes, cores| {
            let query = Query {
                collective: Collective::AllToAllVector,
                sync: SyncModes::STRICT,
                pes,
                bytes,
                operator: OperatorClass::Commutative,
                symmetric: false,
            };
            let model = MachineModel::typical(cores);
            let candidate = "two_phase_bruck(radix=2,block_bytes=128)".parse().expect("its name");
            let direct = Direct::cost_ns(&query, &Candidate::new(Direct::NAME), &model);
            TwoPhaseBruck::cost_ns(&query, &candidate, &model) < direct
        };
        for pes in [16, 64, 192] {
            assert!(prefers_rounds(pes, 64, 192) && !prefers_rounds(pes, 512, 192), "{pes} PEs");
            assert_eq!(prefers_rounds(pes, 0, 192), pes >= FEWEST_PES, "{pes} PEs");
        }
        assert!(!prefers_rounds(2, 0, 192));
        assert!(!prefers_rounds(64, 0, 2), "a hop is a turn of the scheduler");
    }
}
