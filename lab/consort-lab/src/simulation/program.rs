//! A program for the PEs of a simulation: calls of one collective, in a row or each alone.

use std::{cell::Cell, ops::Range};

use anyhow::{Result, anyhow, bail};
use consort::{
    Rank,
    sync_modes::SyncMode,
    tune::{Candidate, Collective, Query},
};
use consort_collectives::Setting;
use consort_fabric::{CallSpec, Capabilities, Kernel, Layout, Sum, splitmix64};
use consort_sim::{Buffer, Caller, Operands, Outcome, Pe, Plans, Simulation};

use consort_bench::harness::Mode;

/// Returns the entry and exit barrier of Strict calls, unless a program has another one.
pub fn barrier() -> Candidate {
    Candidate::new("dissemination").with("radix", 2)
}

/// Calls of one collective.
#[derive(Clone, Debug)]
pub struct Program {
    /// The call. If it combines data, it sums integers.
    pub query: Query,
    /// The algorithm with its parameters.
    pub candidate: Candidate,
    /// The entry and exit barrier, if the modes require any.
    pub barrier: Candidate,
    /// The root.
    pub root: Rank,
    /// Single calls, or calls in a row.
    pub mode: Mode,
    /// The number of calls.
    pub calls: u64,
    /// Whether the blocks of a vector variant have random lengths, from 0 to twice the query's.
    pub uneven: bool,
}

/// The times when a PE entered and left each call, in nanoseconds.
type Times = Vec<(f64, f64)>;

/// The outcome of a simulated program.
#[derive(Debug)]
pub struct ProgramOutcome {
    /// The time of each call, in nanoseconds. For single calls it is from the first entry to the
    /// last exit; for calls in a row, from last exit to last exit.
    pub calls_ns: Vec<f64>,
    /// The time that each PE spent in all calls, in nanoseconds.
    pub within_ns: Vec<f64>,
    /// The last PE to leave the last call.
    pub last: Rank,
    /// The simulator's counts.
    pub outcome: Outcome<()>,
}

impl ProgramOutcome {
    /// Returns the time of a call, in nanoseconds: the median of single calls, or the mean of calls
    /// in a row after the first, which fills the pipeline.
    ///
    /// # Errors
    /// When no call was timed.
    pub fn call_ns(&self, mode: Mode) -> Result<f64> {
        match (mode, &self.calls_ns[..]) {
            (Mode::Throughput, [_, later @ ..]) if !later.is_empty() => {
                Ok(later.iter().sum::<f64>() / later.len() as f64)
            }
            (_, calls_ns) => median_ns(calls_ns),
        }
    }
}

impl Program {
    /// Returns a single call from or to PE 0.
    pub fn once(query: Query, candidate: &Candidate) -> Self {
        let (candidate, root) = (candidate.clone(), Rank(0));
        let (barrier, mode) = (barrier(), Mode::Latency);
        Self { query, candidate, barrier, root, mode, calls: 1, uneven: false }
    }

    /// Returns the number of bytes in a block, or their mean.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.query.bytes).unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes in the longest block.
    fn longest(&self) -> usize {
        self.bytes() * if self.uneven { 2 } else { 1 }
    }

    /// Returns the number of bytes in the block from one PE to another.
    fn block_bytes(&self, from: Rank, to: Rank) -> usize {
        if !self.uneven {
            return self.bytes();
        }
        // A PE that contributes one block sends it to every PE.
        let is_for_all = self.query.collective.source_blocks(2, true) == 1;
        let to = if is_for_all { 0 } else { u64::from(to.0) };
        let random = splitmix64(&mut (u64::from(from.0) << 32 | to));
        usize::try_from(random % (self.longest() as u64 + 1)).unwrap_or(0)
    }

    /// Returns the ranges of bytes of a PE's blocks in its source and in its target, by rank. The
    /// blocks are as far apart as if all had the greatest length.
    fn ranges(&self, me: Rank) -> [Vec<Range<usize>>; 2] {
        let Query { collective, pes, .. } = self.query;
        let is_root = me == self.root;
        let of = |blocks: u32, bytes: &dyn Fn(Rank) -> usize| {
            let range = |peer: Rank| {
                let at = if blocks > 1 { peer.index() * self.longest() } else { 0 };
                at..at + bytes(peer)
            };
            (0..pes).map(Rank).map(range).collect()
        };
        [
            of(collective.source_blocks(pes, is_root), &|peer| self.block_bytes(me, peer)),
            of(collective.target_blocks(pes, is_root), &|peer| self.block_bytes(peer, me)),
        ]
    }

    /// Returns the number of bytes of symmetric memory that its buffers take on a PE.
    pub fn heap_bytes(&self) -> usize {
        let Query { collective, pes, symmetric, .. } = self.query;
        let blocks = collective.source_blocks(pes, true) + collective.target_blocks(pes, true);
        if symmetric { blocks as usize * self.longest() } else { 0 }
    }

    /// Returns the description of one of its calls.
    fn call(&self) -> CallSpec {
        CallSpec { root: self.root, ..CallSpec::from(&self.query) }
    }

    /// Returns the setting for which its schedule is made.
    pub fn setting(&self, capabilities: Capabilities) -> Setting {
        Setting::of(self.call(), capabilities)
    }

    /// Runs the program.
    ///
    /// # Errors
    /// When the algorithm cannot serve the call, or the simulation fails.
    pub fn simulate_on(&self, simulation: &Simulation) -> Result<ProgramOutcome> {
        self.simulate_with_progress(simulation, &|_| {})
    }

    /// Runs the program, and passes the completed share of the calls to `show`.
    ///
    /// # Errors
    /// As [`Program::simulate_on`].
    pub fn simulate_with_progress(
        &self,
        simulation: &Simulation,
        show: &dyn Fn(f64),
    ) -> Result<ProgramOutcome> {
        let plans = simulation.plan(&self.call(), &self.candidate, &self.barrier)?;
        let data = Data::of(self.longest());
        let running = RunningProgram { program: self, plans, data, show, left: Cell::new(0) };
        let outcome = simulation.run(async |pe: &Pe<'_>| running.member(pe).await)?;
        let times: Vec<Times> = outcome.results.into_iter().collect::<Result<_>>()?;
        let within_ns = |pe: &Times| pe.iter().map(|(entered, left)| left - entered).sum();
        let left_ns = |rank: &u32| times[*rank as usize].last().map_or(0.0, |(_, left)| *left);
        let last = (0..self.query.pes).max_by(|one, other| left_ns(one).total_cmp(&left_ns(other)));
        Ok(ProgramOutcome {
            calls_ns: self.calls_ns(&times),
            within_ns: times.iter().map(within_ns).collect(),
            last: Rank(last.unwrap_or(0)),
            outcome: Outcome {
                results: Vec::new(),
                totals: outcome.totals,
                ended_ns: outcome.ended_ns,
                events: outcome.events,
                trace: outcome.trace,
            },
        })
    }

    fn calls_ns(&self, times: &[Times]) -> Vec<f64> {
        let first = |call: usize| times.iter().map(|pe| pe[call].0).fold(f64::INFINITY, f64::min);
        let last = |call: usize| times.iter().map(|pe| pe[call].1).fold(0.0, f64::max);
        let calls = times.first().map_or(0, Vec::len);
        (0..calls)
            .map(|call| match self.mode {
                Mode::Latency => last(call) - first(call),
                Mode::Throughput if call == 0 => last(0),
                Mode::Throughput => last(call) - last(call - 1),
            })
            .collect()
    }
}

struct RunningProgram<'p> {
    program: &'p Program,
    plans: Plans,
    data: Data,
    show: &'p dyn Fn(f64),
    /// The number of calls that some PE has left.
    left: Cell<u64>,
}

impl RunningProgram<'_> {
    fn buffer(&self, data: Vec<u8>, at: usize) -> Buffer {
        if self.program.query.symmetric {
            Buffer::Symmetric { at, bytes: data.len() }
        } else {
            Buffer::Owned(data)
        }
    }

    async fn member(&self, pe: &Pe<'_>) -> Result<Times> {
        let Program { query, root, mode, calls, .. } = *self.program;
        let Query { collective, symmetric, .. } = query;
        let mut caller = Caller::new(pe);
        let is_root = pe.rank() == root;
        let [source_bytes, target_bytes] = [
            collective.source_blocks(pe.size(), symmetric || is_root),
            collective.target_blocks(pe.size(), symmetric || is_root),
        ]
        .map(|blocks| blocks as usize * self.data.bytes);
        // A broadcast in symmetric memory has one buffer on each PE.
        let (target_at, target_bytes) = match collective {
            Collective::Broadcast if symmetric => (0, source_bytes),
            _ => (source_bytes, target_bytes),
        };
        let ranges = self.program.ranges(pe.rank());
        let layouts = || {
            let listed = |blocks| Layout::Listed { blocks, element_bytes: 1 };
            let [source, target] = &ranges;
            let even = || Layout::of_blocks(collective, pe.size(), is_root, self.data.bytes);
            if self.program.uneven { Some([listed(source), listed(target)]) } else { even() }
        };
        let mut times = Times::new();
        for call in 0..calls {
            // Symmetric memory is written once, because peers may read it early or late.
            let sent = if symmetric { 0 } else { call };
            let mut source = self.data.source(self.program, pe.rank(), sent);
            let has_data = collective == Collective::Broadcast && is_root;
            if symmetric {
                source.resize(source_bytes, 0);
            }
            if symmetric && call == 0 {
                pe.set_heap(0, &source);
            }
            let target = if has_data { source.clone() } else { vec![0; target_bytes] };
            if mode == Mode::Latency {
                pe.align().await;
            }
            let operands = Operands {
                kernel: collective.combines().then(|| Kernel::new::<u64, _>(&Sum)),
                source: self.buffer(source, 0),
                target: self.buffer(target, target_at),
                layouts: layouts(),
            };
            let done = caller.call(&self.plans, operands).await;
            let done = done.map_err(|_| anyhow!("the call failed"))?;
            times.push((done.entered_ns, done.left_ns));
            // With exit mode None, data may move until all PEs have left.
            if symmetric && query.sync.exit == SyncMode::None {
                if call + 1 < calls {
                    self.note_left(calls, pe.size());
                    continue;
                }
                pe.align().await;
            }
            let received = if symmetric { pe.heap(target_at, target_bytes) } else { done.received };
            if !self.data.is_right(self.program, pe.rank(), sent, &received) {
                bail!("PE {} received something else in call {call}", pe.rank());
            }
            self.note_left(calls, pe.size());
        }
        Ok(times)
    }

    /// Records that a PE has left a call.
    fn note_left(&self, calls: u64, pes: u32) {
        self.left.set(self.left.get() + 1);
        (self.show)(self.left.get() as f64 / (calls * u64::from(pes)) as f64);
    }
}

/// The data that PEs send, made once for all PEs and calls.
struct Data {
    bytes: usize,
    pattern: Vec<u8>,
}

/// The number of consecutive calls that send different data. It is larger than the number of calls
/// that can be pending at once.
const DIFFERENT: u8 = 64;
/// Bytes in the numbers that a reduction adds.
const WORD: usize = size_of::<u64>();

impl Data {
    fn of(bytes: usize) -> Self {
        let byte = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
        Self { bytes, pattern: (0..bytes + usize::from(DIFFERENT)).map(byte).collect() }
    }

    /// Returns block `index` of the contribution of PE `rank` to a call that combines nothing.
    fn block(&self, rank: Rank, index: u32, call: u64) -> &[u8] {
        let turn = call + 5 * u64::from(rank.0) + 11 * u64::from(index);
        &self.pattern[usize::try_from(turn % u64::from(DIFFERENT)).unwrap_or(0)..][..self.bytes]
    }

    /// Returns the numbers of block `index` of PE 0's contribution to a sum. Other PEs add
    /// multiples of them. The numbers are small enough that the sum of all multiples fits in a
    /// word.
    fn words(&self, index: u32) -> impl Iterator<Item = u64> {
        self.block(Rank(0), index, 0).chunks_exact(WORD).map(|word| {
            let [low, middle, high, ..] = *word else { return 0 };
            u64::from_le_bytes([low, middle, high, 0, 0, 0, 0, 0])
        })
    }

    /// Returns the numbers of block `index`, multiplied by `times`.
    fn multiple(&self, index: u32, times: u64) -> impl Iterator<Item = u8> {
        self.words(index).flat_map(move |word| (word * times).to_ne_bytes())
    }

    /// Returns the contribution of a PE to a call.
    fn source(&self, program: &Program, rank: Rank, call: u64) -> Vec<u8> {
        let Query { collective, pes, .. } = program.query;
        let blocks = 0..collective.source_blocks(pes, rank == program.root);
        if collective.combines() {
            return blocks.flat_map(|index| self.multiple(index, u64::from(rank.0) + 1)).collect();
        }
        blocks.flat_map(|index| self.block(rank, index, call)).copied().collect()
    }

    /// Returns whether a PE has received the correct data.
    fn is_right(&self, program: &Program, me: Rank, call: u64, received: &[u8]) -> bool {
        let (Query { collective, pes, .. }, root) = (program.query, program.root);
        if collective.target_blocks(pes, me == root) == 0 {
            return true;
        }
        let is_sum = |index, ranks: u32| {
            let multiples = u64::from(ranks) * (u64::from(ranks) + 1) / 2;
            received.len() == self.bytes
                && self.multiple(index, multiples).eq(received.iter().copied())
        };
        let is_block = |from: Rank, at: usize, index| {
            let bytes = program.block_bytes(from, me);
            received[at..][..bytes] == self.block(from, index, call)[..bytes]
        };
        let are_blocks = |index| {
            received.len() == pes as usize * self.bytes
                && (0..pes).map(Rank).all(|from| is_block(from, from.index() * self.bytes, index))
        };
        match collective.regular() {
            Collective::Barrier => true,
            Collective::Broadcast => received == self.block(root, 0, call),
            Collective::Scatter => is_block(root, 0, me.0),
            Collective::Gather | Collective::AllGather => are_blocks(0),
            Collective::AllToAll => are_blocks(me.0),
            Collective::Reduce | Collective::AllReduce => is_sum(0, pes),
            Collective::ReduceScatter => is_sum(me.0, pes),
            Collective::Scan => is_sum(0, me.0 + 1),
            Collective::ExclusiveScan => me.0 == 0 || is_sum(0, me.0),
            vector => unreachable!("{vector} is not regular"),
        }
    }
}

/// Returns the median of the calls' times, in nanoseconds.
///
/// # Errors
/// When there is no call.
fn median_ns(calls_ns: &[f64]) -> Result<f64> {
    let mut sorted = calls_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().ok_or_else(|| anyhow!("no call was timed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort::sync_modes::SyncModes;
    use consort_bench::query_json::sums;
    use consort_fabric::reference;

    fn program(collective: Collective) -> Program {
        let query = sums(collective, SyncModes::MINE, 3, 24, false);
        Program::once(query, &Candidate::new("flat"))
    }

    #[test]
    fn data_differs_between_calls_and_blocks() {
        let data = Data::of(100);
        let first = data.block(Rank(0), 0, 0);
        assert_eq!(first.len(), 100);
        assert!((1..DIFFERENT).all(|call| data.block(Rank(0), 0, call.into()) != first));
        assert!(data.block(Rank(1), 0, 0) != first && data.block(Rank(0), 1, 0) != first);
    }

    #[test]
    fn result_contains_each_pe_once() {
        let data = Data::of(24);
        for collective in Collective::EVERY.into_iter().filter(|one| one.combines()) {
            let (program, me) = (program(collective), Rank(2));
            let kernel = Kernel::new::<u64, _>(&Sum);
            let sum = |ranks: &[u32]| {
                let block = |at: Rank, index: u32| {
                    let source = data.source(&program, Rank(ranks[at.index()]), 0);
                    source[index as usize * 24..][..24].to_vec()
                };
                let root = program.root;
                let me = if collective.is_rooted() { root } else { me };
                let kernel = Some(&kernel);
                let result = reference::result(collective, 3, me, root, kernel, block).unwrap();
                data.is_right(&program, me, 0, &result)
            };
            assert!(sum(&[0, 1, 2]), "{collective}");
            assert!(!sum(&[0, 2, 2]) && !sum(&[1, 1, 2]), "{collective}");
            assert!(
                !data.is_right(&program, Rank(0), 0, &[])
                    || collective == Collective::ExclusiveScan
            );
        }
    }

    #[test]
    fn calls_in_a_row_count_without_the_first() {
        let simulated = |calls_ns: &[f64]| ProgramOutcome {
            calls_ns: calls_ns.to_vec(),
            within_ns: Vec::new(),
            last: Rank(0),
            outcome: Outcome {
                results: Vec::new(),
                totals: Vec::new(),
                ended_ns: 0.0,
                events: 0,
                trace: consort_sim::Trace::default(),
            },
        };
        let times = [9.0, 1.0, 2.0, 6.0];
        assert_eq!(simulated(&times).call_ns(Mode::Throughput).unwrap(), 3.0);
        assert_eq!(simulated(&times[..1]).call_ns(Mode::Throughput).unwrap(), 9.0);
        assert_eq!(simulated(&times[..3]).call_ns(Mode::Latency).unwrap(), 2.0);
        assert!(simulated(&[]).call_ns(Mode::Latency).is_err());
    }
}
