//! Programs on the PEs of a simulation.

use consort_conformance::{Case, Counts, Member, Place, Program, Side, data::kernel, run};
use consort_fabric::Rank;
use consort_sim::{Buffer, Caller, Operands, Outcome, Pe, Plans, Simulation, SimulationError};

/// The delay of a late PE: others make many calls meanwhile.
const LATE_NS: f64 = 1e6;

/// A PE of a simulation.
struct Simulated<'p, 'w> {
    pe: &'p Pe<'w>,
    caller: Caller<'p, 'w>,
    program: &'p Program,
    plans: &'p [Plans],
}

impl Simulated<'_, '_> {
    /// Returns the offset of a call's buffer in the heap, and its length.
    fn span(&self, call: usize, side: Side) -> (usize, usize) {
        let place = self.program.place(call).expect("a call on symmetric memory");
        match side {
            Side::Source => (place.source_at, place.source_bytes),
            Side::Target => (place.target_at, place.target_bytes),
        }
    }
}

/// Returns the buffers of a call: private ones, or their positions in symmetric memory. Every PE
/// gives both positions, even of a buffer that it does not use.
fn buffers(private: Option<[Vec<u8>; 2]>, place: Option<Place>) -> [Buffer; 2] {
    match (private, place) {
        (Some(private), _) => private.map(Buffer::Owned),
        (None, Some(Place { source_at, source_bytes, target_at, target_bytes })) => [
            Buffer::Symmetric { at: source_at, bytes: source_bytes },
            Buffer::Symmetric { at: target_at, bytes: target_bytes },
        ],
        (None, None) => unreachable!("buffers are private or symmetric"),
    }
}

impl Member for Simulated<'_, '_> {
    const ALONE_BETWEEN_WAITS: bool = true;

    fn rank(&self) -> Rank {
        self.pe.rank()
    }

    fn read(&self, of: Rank, call: usize, side: Side) -> Vec<u8> {
        let (at, bytes) = self.span(call, side);
        self.pe.heap_of(of, at, bytes)
    }

    fn write(&self, of: Rank, call: usize, side: Side, data: &[u8]) {
        self.pe.set_heap_of(of, self.span(call, side).0, data);
    }

    async fn align(&self) {
        self.pe.align().await;
    }

    async fn be_late(&self) {
        self.pe.work(LATE_NS).await;
    }

    async fn call(&mut self, call: usize, case: &Case, private: Option<[Vec<u8>; 2]>) -> Vec<u8> {
        let combines = case.kind.collective.combines();
        let [source, target] = buffers(private, self.program.place(call));
        let operands = Operands {
            kernel: combines.then(|| kernel(case.bytes, case.kind.class())),
            source,
            target,
            layouts: self.program.layouts(call, self.pe.rank()),
        };
        let done = self.caller.call(&self.plans[call], operands).await;
        done.expect("nothing poisons a simulation").received
    }
}

/// Runs a program of cases that can be served, by the algorithms of the registry.
///
/// # Errors
/// When the simulation does not end.
///
/// # Panics
/// When a PE's data differs from the oracle's.
pub(crate) fn simulate(
    simulation: &Simulation,
    program: &Program,
) -> Result<Outcome<()>, SimulationError> {
    simulate_by(simulation, program, |case| {
        let candidate = case.kind.candidate.as_ref().expect("the simulator selects nothing");
        simulation.plan(&case.call(program.pes), candidate, &case.barrier)
    })
}

/// As [`simulate`], with plans from `plan`.
///
/// # Errors
/// When there is no plan, or as [`simulate`].
pub(crate) fn simulate_by(
    simulation: &Simulation,
    program: &Program,
    plan: impl Fn(&Case) -> Result<Plans, SimulationError>,
) -> Result<Outcome<()>, SimulationError> {
    let simulation = simulation.clone().seed(program.seed).heap_bytes(program.heap_bytes());
    let plans: Vec<Plans> = program.cases.iter().map(plan).collect::<Result<_, _>>()?;
    let progress = Counts::of(program);
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let mut member = Simulated { pe, caller: Caller::new(pe), program, plans: &plans };
        run(&mut member, program, &progress).await;
    })?;
    Ok(outcome)
}

/// Returns a program's calls, for a message.
pub(crate) fn listed(program: &Program) -> String {
    program.cases.iter().map(|case| format!("\n    {case}")).collect()
}
