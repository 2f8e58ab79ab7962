//! Plays a program, calls one after the other, and compares what comes of each with the oracle.
//!
//! A PE does with its buffers what their modes allow, as early as they allow it: it looks at them
//! until it enters a call, unless the entry mode is None, and writes over them when it leaves,
//! unless the exit mode is None. Where the entry mode is All there is nothing to contribute until
//! the last enters, who brings it all; where the exit mode is All the first to leave looks at
//! everyone's result. One PE is late once, and others may run ahead of it. A barrier ends every
//! program; after it all must be as it should.

use std::{cell::Cell, future::Future, pin::Pin};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, flow::Flow, visit};
use consort_fabric::{Candidate, Collective, Layout, Mode, Op, Rank, Sync, reference};
use consort_sim::{Buffer, Call, Operands, Outcome, Pe, Simulation, SimulationError};

use crate::{
    cases::{Case, Kind},
    data::{BLANK, SPENT, block, kernel},
};

/// How late a PE is that is late: others make many calls meanwhile.
const LATE_NS: f64 = 1e6;

/// Runs a case's plan on a call.
struct Run<'r> {
    case: &'r Case,
    setting: Setting,
    call: &'r Call<'r>,
}

impl<'r> Visitor for Run<'r> {
    type Output = Result<Pin<Box<dyn Future<Output = Op> + 'r>>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Case { kind, barrier, .. } = self.case;
        let plan = Plan::<A>::new(kind.collective, &self.setting, &kind.candidate, barrier)?;
        Ok(Box::pin(async move { plan.run(self.call).await }))
    }
}

/// A program, and what its PEs share in no simulated way.
struct Player<'p> {
    pes: u32,
    seed: u64,
    cases: &'p [Case],
    simulation: &'p Simulation,
    /// How many PEs have entered each call.
    entered: Vec<Cell<u32>>,
    /// Whether a PE has left it.
    left: Vec<Cell<bool>>,
}

/// Where the buffers of a case lie in the heap.
#[derive(Clone, Copy)]
struct Place {
    source: usize,
    target: usize,
}

/// The barrier at the end of a program.
fn last() -> Case {
    let candidate = Candidate::new("central");
    let kind = Kind { collective: Collective::Barrier, candidate, is_ordered: false };
    let barrier = kind.candidate.clone();
    let (sync, root) = (Sync::STRICT, Rank(0));
    Case { kind, barrier, sync, size: 0, bytes: 0, root, symmetric: false }
}

/// Plays a program of cases that can be served.
///
/// # Errors
/// When the simulation comes to no end.
///
/// # Panics
/// When a PE has something else than the oracle says.
pub(crate) fn play(
    simulation: &Simulation,
    pes: u32,
    seed: u64,
    cases: &[Case],
) -> Result<Outcome<()>, SimulationError> {
    let mut cases = cases.to_vec();
    cases.push(last());
    let heap_bytes = places(&cases, pes).1;
    let simulation = simulation.clone().seed(seed).heap_bytes(heap_bytes);
    let entered = cases.iter().map(|_| Cell::new(0)).collect();
    let left = cases.iter().map(|_| Cell::new(false)).collect();
    let player = Player { pes, seed, cases: &cases, simulation: &simulation, entered, left };
    simulation.run(async |pe: &Pe<'_>| player.member(pe).await)
}

/// How many blocks the source and the target of a case have, as long as anyone's; a broadcast has
/// one of both.
fn blocks(case: &Case, pes: u32) -> (usize, usize) {
    let Kind { collective, .. } = case.kind;
    let target = collective.target_blocks(pes, collective != Collective::Broadcast);
    (collective.source_blocks(pes, true) as usize, target as usize)
}

/// Where the buffers of all cases lie, and how long the heap is.
fn places(cases: &[Case], pes: u32) -> (Vec<Place>, usize) {
    let mut end = 0;
    let mut next = |bytes| {
        let at = end;
        end += bytes;
        at
    };
    let mut place = |case: &Case| {
        let bytes = if case.symmetric { case.bytes } else { 0 };
        let blocks = blocks(case, pes);
        let source = next(blocks.0 * bytes);
        let is_one = case.kind.collective == Collective::Broadcast;
        Place { source, target: if is_one { source } else { next(blocks.1 * bytes) } }
    };
    (cases.iter().map(&mut place).collect(), end)
}

impl Player<'_> {
    fn seed_of(&self, call: usize) -> u64 {
        self.seed << 8 | call as u64
    }

    /// Whether a PE is late for a call: one is, once.
    fn is_late(&self, call: usize, me: Rank) -> bool {
        let (pes, calls) = (u64::from(self.pes), self.cases.len() as u64);
        let (who, when) = (self.seed % 5 % pes, self.seed / 5 % calls);
        (u64::from(me.0), call as u64) == (pes - 1 - who, when)
    }

    /// What a PE has in the source and the target of a call when it enters.
    fn before(&self, call: usize, me: Rank) -> (Vec<u8>, Vec<u8>) {
        let case @ &Case { ref kind, bytes, root, .. } = &self.cases[call];
        let (source, target) = blocks(case, self.pes);
        let contributed = kind.collective.source_blocks(self.pes, me == root);
        let seed = self.seed_of(call);
        let mine: Vec<u8> =
            (0..contributed).flat_map(|index| block(seed, me, index, bytes)).collect();
        if kind.collective == Collective::Broadcast && me == root {
            return (mine.clone(), mine);
        }
        let blank = |blocks: usize| vec![BLANK; blocks * bytes];
        (if contributed > 0 { mine } else { blank(source) }, blank(target))
    }

    /// Whether the last to enter a call brings what all contribute.
    fn is_brought(&self, call: usize) -> bool {
        self.cases[call].symmetric && self.cases[call].sync.entry == Mode::All
    }

    /// What a PE has in the source and the target of a call until all have entered, if so.
    fn at_first(&self, call: usize, me: Rank) -> (Vec<u8>, Vec<u8>) {
        let (mut source, mut target) = self.before(call, me);
        if self.is_brought(call) {
            source.fill(BLANK);
            target.fill(BLANK);
        }
        (source, target)
    }

    /// What is in the target when all is done.
    fn after(&self, call: usize, me: Rank) -> Vec<u8> {
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        let seed = self.seed_of(call);
        let block = |rank, index| block(seed, rank, index, bytes);
        let kernel = kernel(bytes, kind.class());
        let result = reference::result(kind.collective, self.pes, me, root, Some(&kernel), block);
        result.unwrap_or_else(|| self.before(call, me).1)
    }

    /// The buffers for a call.
    fn operands(&self, call: usize, me: Rank, Place { source, target }: Place) -> Operands<'_> {
        let Case { ref kind, bytes, root, symmetric, .. } = self.cases[call];
        let kernel = kind.collective.combines().then(|| kernel(bytes, kind.class()));
        if symmetric {
            // Everyone has both, and says where a peer's lie that it has no use for itself.
            let (of_source, of_target) = blocks(&self.cases[call], self.pes);
            let source = Buffer::Symmetric { at: source, bytes: of_source * bytes };
            let target = Buffer::Symmetric { at: target, bytes: of_target * bytes };
            let is_root = me == root;
            let layouts = Layout::of_blocks(kind.collective, self.pes, is_root, bytes);
            return Operands { kernel, source, target, layouts };
        }
        let absent = || Buffer::Owned(Vec::new());
        let is_root = me == root;
        let (source, target) = self.before(call, me);
        let has_source = kind.collective.source_blocks(self.pes, is_root) > 0;
        let has_target = kind.collective.target_blocks(self.pes, is_root) > 0;
        Operands {
            kernel,
            source: if has_source { Buffer::Owned(source) } else { absent() },
            target: if has_target { Buffer::Owned(target) } else { absent() },
            layouts: Layout::of_blocks(kind.collective, self.pes, is_root, bytes),
        }
    }

    async fn member(&self, pe: &Pe<'_>) {
        let me = pe.rank();
        let (places, _) = places(self.cases, self.pes);
        let symmetric = || (0..self.cases.len()).filter(|&call| self.cases[call].symmetric);
        for call in symmetric() {
            let (source, target) = self.at_first(call, me);
            pe.set_heap(places[call].source, &source);
            pe.set_heap(places[call].target, &target);
        }
        pe.align().await;
        let mut flow = Flow::new(pe.window());
        let mut synchronized = true; // nothing is under way before the first call
        for (call, case) in self.cases.iter().enumerate() {
            let Place { source, target } = places[call];
            let look = |when: &str, (at, expected): (usize, &[u8])| {
                let same = pe.heap(at, expected.len()) == expected;
                assert!(same, "PE {me} has other data {when} call {call}: {case}");
            };
            let untouched = case.symmetric && case.sync.entry != Mode::None;
            if untouched {
                let before = self.at_first(call, me);
                look("before", (source, &before.0));
                look("before", (target, &before.1));
            }
            if self.is_late(call, me) {
                pe.work(LATE_NS).await;
            }
            let entered = &self.entered[call];
            entered.set(entered.get() + 1);
            if self.is_brought(call) && entered.get() == self.pes {
                for peer in (0..self.pes).map(Rank) {
                    let first = self.at_first(call, peer).1;
                    let same = pe.heap_of(peer, target, first.len()) == first;
                    assert!(same, "PE {peer} has data before all are in call {call}: {case}");
                    pe.set_heap_of(peer, source, &self.before(call, peer).0);
                }
            }
            let fabric = pe.begin(self.operands(call, me, places[call])).await;
            if call as u64 & flow.quarter_mask() == 0 {
                let turn = flow.turn(std::mem::replace(&mut synchronized, false));
                turn.run(&fabric).await.expect("nothing poisons a simulation");
            }
            self.run(case, &fabric).await;
            synchronized |= case.synchronizes();
            let is_receiver = case.kind.collective.target_blocks(self.pes, me == case.root) > 0;
            // Nothing moves before all have entered, or nobody leaves before.
            let has_data = is_receiver && case.sync.exit != Mode::None;
            if case.sync.exit == Mode::All || case.sync.entry == Mode::All && has_data {
                let entered = entered.get();
                assert_eq!(entered, self.pes, "PE {me} has left call {call}: {case}");
            }
            let received = fabric.finish();
            let expected = || self.after(call, me);
            if case.symmetric {
                if case.sync.exit == Mode::All && !self.left[call].replace(true) {
                    for peer in (0..self.pes).map(Rank) {
                        let expected = self.after(call, peer);
                        let same = pe.heap_of(peer, target, expected.len()) == expected;
                        assert!(same, "PE {me} left call {call} before PE {peer} had all: {case}");
                    }
                }
                if case.sync.exit != Mode::None {
                    look("after", (target, &expected()));
                    let blocks = blocks(case, self.pes);
                    pe.set_heap(source, &vec![SPENT; blocks.0 * case.bytes]);
                    pe.set_heap(target, &vec![SPENT; blocks.1 * case.bytes]);
                }
            } else if is_receiver {
                assert!(received == expected(), "PE {me} received something else: {case}");
            }
        }
        for call in symmetric() {
            let case = &self.cases[call];
            let mut expected = self.after(call, me);
            if case.sync.exit != Mode::None {
                expected.fill(SPENT);
            }
            let found = pe.heap(places[call].target, expected.len());
            assert!(found == expected, "PE {me} has other data at the end: {case}");
        }
    }

    async fn run(&self, case: &Case, call: &Call<'_>) {
        let Kind { collective, candidate, .. } = &case.kind;
        let capabilities = self.simulation.capabilities().expect("the machine has these PEs");
        let setting = case.setting(self.pes, capabilities).at(consort_fabric::Fabric::rank(call));
        let run = visit(*collective, &candidate.algorithm, Run { case, setting, call });
        let run = run.and_then(|run| run).unwrap_or_else(|error| panic!("{error}: {case}"));
        run.await.expect("nothing poisons a simulation");
    }
}
