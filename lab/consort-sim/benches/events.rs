//! The speed of the simulator: events a second of small calls among thousands of PEs of a cluster
//! of LogGP nodes.
//!
//! ```sh
//! cargo bench -p consort-sim
//! ```

use consort_fabric::{CallSpec, Candidate, Collective, Kernel, Op, Sum, SyncModes};
use consort_sim::{Buffer, Caller, Operands, Outcome, Pe, Plans, Simulation, machines::Machine};
use divan::{Bencher, counter::ItemsCount};

const PES: u32 = 4096;
const BYTES: usize = 8;
/// Calls in a simulation, each of which starts after all PEs have left the one before. This many
/// need no flow control.
const CALLS: u32 = 4;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn barrier(bencher: Bencher<'_, '_>) {
    simulate(bencher, Collective::Barrier, "dissemination(radix=2)");
}

#[divan::bench(sample_count = 5)]
fn broadcast(bencher: Bencher<'_, '_>) {
    simulate(bencher, Collective::Broadcast, "knomial(radix=2)");
}

#[divan::bench(sample_count = 5)]
fn reduce(bencher: Bencher<'_, '_>) {
    simulate(bencher, Collective::Reduce, "knomial(radix=2)");
}

/// Simulates calls of one algorithm. An item is an event.
fn simulate(bencher: Bencher<'_, '_>, collective: Collective, candidate: &str) {
    let machine = Machine::find("cluster").expect("a shipped machine");
    let simulation = Simulation::on(machine, PES);
    let candidate: Candidate = candidate.parse().expect("a candidate");
    let call = CallSpec {
        collective,
        sync: SyncModes::MINE,
        bytes: BYTES,
        element_bytes: BYTES,
        ..CallSpec::barrier(PES)
    };
    let plans = simulation.plan(&call, &candidate, &candidate).expect("it can serve");
    let events = calls(&simulation, &plans).events;
    bencher.counter(ItemsCount::new(events)).bench_local(|| calls(&simulation, &plans));
}

/// Makes the calls on every PE.
fn calls(simulation: &Simulation, plans: &Plans) -> Outcome<Op> {
    let member = async |pe: &Pe<'_>| -> Op {
        let mut caller = Caller::new(pe);
        for _ in 0..CALLS {
            pe.align().await;
            let operands = Operands {
                kernel: Some(Kernel::new::<u64, _>(&Sum)),
                source: Buffer::Owned(vec![1; BYTES]),
                target: Buffer::Owned(vec![0; BYTES]),
                layouts: None,
            };
            caller.call(plans, operands).await?;
        }
        Ok(())
    };
    simulation.run(member).expect("the simulation ends")
}
