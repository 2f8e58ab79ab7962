//! Plays a program, calls one after the other, and compares what comes of each with the oracle.
//!
//! A PE does with its buffers what their modes allow, as early as they allow it: it looks at them
//! until it enters a call, unless the entry mode is None, and writes over them when it leaves,
//! unless the exit mode is None. One PE is late once, and others may run ahead of it. A barrier
//! ends every program; after it all must be as it should.

use std::{cell::Cell, future::Future, pin::Pin};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, flow::Flow, visit};
use consort_fabric::{Candidate, Collective, Mode, Op, Rank, Sync};
use consort_sim::{Buffer, Call, Operands, Outcome, Pe, Simulation, SimulationError};

use crate::{
    cases::{Case, Kind},
    data::{BLANK, SPENT, combined, contribution, kernel},
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
    let (sync, bytes, root) = (Sync::STRICT, 0, Rank(0));
    Case { kind, barrier, sync, bytes, root, symmetric: false }
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
    let heap_bytes = places(&cases).1;
    let simulation = simulation.clone().seed(seed).heap_bytes(heap_bytes);
    let entered = cases.iter().map(|_| Cell::new(0)).collect();
    let player = Player { pes, seed, cases: &cases, simulation: &simulation, entered };
    simulation.run(async |pe: &Pe<'_>| player.member(pe).await)
}

/// Where the buffers of all cases lie, and how long the heap is.
fn places(cases: &[Case]) -> (Vec<Place>, usize) {
    let mut end = 0;
    let mut next = |bytes| {
        let at = end;
        end += bytes;
        at
    };
    let mut place = |case: &Case| {
        let bytes = if case.symmetric { case.bytes } else { 0 };
        let source = next(bytes);
        let is_one = case.kind.collective == Collective::Broadcast;
        Place { source, target: if is_one { source } else { next(bytes) } }
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
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        let mine = |from| contribution(self.seed_of(call), from, bytes);
        match kind.collective {
            Collective::Barrier => (Vec::new(), Vec::new()),
            Collective::Broadcast if me == root => (mine(root), mine(root)),
            Collective::Broadcast => (vec![BLANK; bytes], vec![BLANK; bytes]),
            Collective::Reduce | Collective::AllReduce => (mine(me), vec![BLANK; bytes]),
        }
    }

    /// What is in the target when all is done.
    fn after(&self, call: usize, me: Rank) -> Vec<u8> {
        let Case { ref kind, bytes, root, .. } = self.cases[call];
        let seed = self.seed_of(call);
        match kind.collective {
            Collective::Barrier => Vec::new(),
            Collective::Broadcast => contribution(seed, root, bytes),
            Collective::Reduce if me != root => vec![BLANK; bytes],
            Collective::Reduce | Collective::AllReduce => {
                combined(seed, self.pes, bytes, kind.class())
            }
        }
    }

    /// The buffers for a call.
    fn operands(&self, call: usize, me: Rank, Place { source, target }: Place) -> Operands<'_> {
        let Case { ref kind, bytes, root, symmetric, .. } = self.cases[call];
        let absent = || Buffer::Owned(Vec::new());
        let is_root = me == root;
        let has_source = kind.collective.contributes(is_root);
        let has_target = kind.collective.receives(is_root);
        let (source, target) = if symmetric {
            (Buffer::Symmetric { at: source, bytes }, Buffer::Symmetric { at: target, bytes })
        } else {
            let (source, target) = self.before(call, me);
            (Buffer::Owned(source), Buffer::Owned(target))
        };
        Operands {
            kernel: kind.collective.combines().then(|| kernel(bytes, kind.class())),
            source: if has_source { source } else { absent() },
            target: if has_target { target } else { absent() },
        }
    }

    async fn member(&self, pe: &Pe<'_>) {
        let me = pe.rank();
        let (places, _) = places(self.cases);
        let symmetric = || (0..self.cases.len()).filter(|&call| self.cases[call].symmetric);
        for call in symmetric() {
            let (source, target) = self.before(call, me);
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
                let before = self.before(call, me);
                look("before", (source, &before.0));
                look("before", (target, &before.1));
            }
            if self.is_late(call, me) {
                pe.work(LATE_NS).await;
            }
            let entered = &self.entered[call];
            entered.set(entered.get() + 1);
            let fabric = pe.begin(self.operands(call, me, places[call])).await;
            if call as u64 & flow.quarter_mask() == 0 {
                let turn = flow.turn(std::mem::replace(&mut synchronized, false));
                turn.run(&fabric).await.expect("nothing poisons a simulation");
            }
            self.run(case, &fabric).await;
            synchronized |= case.synchronizes();
            let is_receiver = case.kind.collective.receives(me == case.root);
            // Nothing moves before all have entered, or nobody leaves before.
            let has_data = is_receiver && case.sync.exit != Mode::None;
            if case.sync.exit == Mode::All || case.sync.entry == Mode::All && has_data {
                let entered = entered.get();
                assert_eq!(entered, self.pes, "PE {me} has left call {call}: {case}");
            }
            let received = fabric.finish();
            let expected = || self.after(call, me);
            if case.symmetric {
                if case.sync.exit != Mode::None {
                    look("after", (target, &expected()));
                    pe.set_heap(source, &vec![SPENT; case.bytes]);
                    pe.set_heap(target, &vec![SPENT; case.bytes]);
                }
            } else if is_receiver {
                assert!(received == expected(), "PE {me} received something else: {case}");
            }
        }
        for call in symmetric() {
            let case = &self.cases[call];
            let is_settled = case.sync.exit != Mode::None;
            let expected = if is_settled { vec![SPENT; case.bytes] } else { self.after(call, me) };
            let found = pe.heap(places[call].target, case.bytes);
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
