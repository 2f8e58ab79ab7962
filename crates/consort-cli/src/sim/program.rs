//! What the PEs of a simulation run: calls of one collective, in a row or each alone.

use anyhow::{Result, anyhow, bail};
use consort::{Candidate, Collective, Rank, Sync};
use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, flow::Flow, visit};
use consort_fabric::{Kernel, OperatorClass, Sum};
use consort_sim::{Buffer, Operands, Outcome, Pe, Simulation};

use crate::bench::session::Mode;

/// Calls of one collective.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) collective: Collective,
    pub(crate) candidate: Candidate,
    pub(crate) sync: Sync,
    pub(crate) root: Rank,
    pub(crate) bytes: usize,
    /// Whether the buffers of a reduction lie in the symmetric heap.
    pub(crate) symmetric: bool,
    pub(crate) mode: Mode,
    pub(crate) calls: u64,
}

/// When a PE entered and left a call, in nanoseconds.
type Times = Vec<(f64, f64)>;

/// What a simulation of a program came to.
#[derive(Debug)]
pub(crate) struct Played {
    /// The time of each call, in nanoseconds: alone, from the first entry to the last exit; in a
    /// row, from last exit to last exit.
    pub(crate) calls_ns: Vec<f64>,
    pub(crate) outcome: Outcome<()>,
}

impl Program {
    /// Runs it.
    ///
    /// # Errors
    /// When the algorithm cannot serve the call, or the simulation comes to no end.
    pub(crate) fn play(&self, simulation: &Simulation, pes: u32) -> Result<Played> {
        let capabilities = simulation.capabilities()?;
        let setting = Setting {
            rank: Rank(0),
            pes,
            root: self.root,
            bytes: self.bytes,
            element_bytes: 8,
            operator: OperatorClass::Commutative,
            sync: self.sync,
            symmetric: self.symmetric,
            capabilities,
            first_slot: Setting::first_slot(self.collective, pes),
            beside: false,
            counter: 1,
        };
        let player = Player { program: self, simulation, setting };
        let outcome = visit(self.collective, &self.candidate.algorithm, player)??;
        let mut times = Vec::new();
        for result in outcome.results {
            times.push(result?);
        }
        let calls_ns = self.calls_ns(&times);
        let outcome = Outcome {
            results: Vec::new(),
            totals: outcome.totals,
            ended_ns: outcome.ended_ns,
            events: outcome.events,
            trace: outcome.trace,
        };
        Ok(Played { calls_ns, outcome })
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

struct Player<'p> {
    program: &'p Program,
    simulation: &'p Simulation,
    setting: Setting,
}

impl Visitor for Player<'_> {
    type Output = Result<Outcome<Result<Times>>>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        // What is wrong with the candidate is found before anything runs.
        self.plan::<A>(Rank(0))?;
        Ok(self.simulation.run(async |pe: &Pe<'_>| self.member::<A>(pe).await)?)
    }
}

impl Player<'_> {
    fn plan<A: Algorithm>(&self, rank: Rank) -> Result<Plan<A>, PlanError> {
        let Program { collective, candidate, .. } = self.program;
        let barrier = Candidate::new("dissemination").with("radix", 2);
        Plan::new(*collective, &self.setting.at(rank), candidate, &barrier)
    }

    fn buffer(&self, data: Vec<u8>, at: usize) -> Buffer {
        if self.program.symmetric {
            Buffer::Symmetric { at, bytes: data.len() }
        } else {
            Buffer::Owned(data)
        }
    }

    async fn member<A: Algorithm>(&self, pe: &Pe<'_>) -> Result<Times> {
        let Program { collective, sync, root, bytes, mode, calls, .. } = *self.program;
        let plan = self.plan::<A>(pe.rank())?;
        let synchronizes = collective == Collective::Barrier || sync == Sync::STRICT;
        let mut flow = Flow::new(pe.window());
        let is_root = pe.rank() == root;
        let mut times = Times::new();
        for call in 0..calls {
            let sent: Vec<u8> = (0..bytes).map(|at| pattern(call, at)).collect();
            let (source, target) = match collective {
                Collective::Barrier => (Vec::new(), Vec::new()),
                Collective::Broadcast if is_root => (sent.clone(), sent.clone()),
                Collective::Broadcast => (Vec::new(), vec![0; bytes]),
                Collective::Reduce => (vec![0; bytes], vec![0; bytes]),
            };
            if mode == Mode::Latency {
                pe.align().await;
            }
            let entered = pe.now_ns();
            let operands = Operands {
                kernel: (collective == Collective::Reduce).then(|| Kernel::new::<u64, _>(&Sum)),
                source: self.buffer(source, 0),
                target: self.buffer(target, bytes),
            };
            let fabric = pe.begin(operands).await;
            if call & flow.quarter_mask() == 0 {
                flow.turn(call == 0 || synchronizes)
                    .run(&fabric)
                    .await
                    .map_err(|_| anyhow!("the call failed"))?;
            }
            plan.run(&fabric).await.map_err(|_| anyhow!("the call failed"))?;
            times.push((entered, pe.now_ns()));
            let received = fabric.finish();
            if collective == Collective::Broadcast && received != sent {
                bail!("PE {} received something else in call {call}", pe.rank());
            }
        }
        Ok(times)
    }
}

/// What a broadcast's root sends in a call.
fn pattern(call: u64, at: usize) -> u8 {
    let mixed = (call.wrapping_mul(31) ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[0]
}

/// The middle one of the calls' times, in nanoseconds.
///
/// # Errors
/// When there is none.
pub(crate) fn median_ns(calls_ns: &[f64]) -> Result<f64> {
    let mut sorted = calls_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().ok_or_else(|| anyhow!("no call was timed"))
}
