//! Measures the speed of the simulator: events per second for small messages among thousands of
//! PEs.
//!
//! `cargo run --release -p consort-sim --example speed [PES]` prints one line for each collective:
//! the calls, the number of events that they take, how long that takes, and how much memory the
//! process has used so far. The calls have 8 bytes and run on a cluster of LogGP nodes. Each starts
//! after all PEs have left the one before.

use std::time::Instant;

use consort_fabric::{CallSpec, Candidate, Collective, Kernel, Op, Sum, SyncModes};
use consort_sim::{Buffer, Caller, Operands, Outcome, Pe, Plans, Simulation, machines::Machine};

/// Calls in a simulation. This many need no flow control.
const CALLS: u32 = 4;
/// Simulations of each collective.
const TIMES: u32 = 5;
const BYTES: usize = 8;

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

/// Returns the peak memory of the process in MiB, if the system reports it.
fn most_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() {
    let pes = std::env::args().nth(1).map_or(4096, |pes| pes.parse().expect("a number of PEs"));
    let machine = Machine::find("cluster").expect("a shipped machine");
    let simulation = Simulation::on(machine, pes);
    for (collective, candidate) in [
        (Collective::Barrier, "dissemination(radix=2)"),
        (Collective::Broadcast, "knomial(radix=2)"),
        (Collective::Reduce, "knomial(radix=2)"),
    ] {
        let candidate: Candidate = candidate.parse().expect("a candidate");
        let call = CallSpec {
            collective,
            sync: SyncModes::MINE,
            bytes: BYTES,
            element_bytes: BYTES,
            ..CallSpec::barrier(pes)
        };
        let began = Instant::now();
        let plans = simulation.plan(&call, &candidate, &candidate).expect("it can serve");
        let events: u64 = (0..TIMES).map(|_| calls(&simulation, &plans).events).sum();
        let s = began.elapsed().as_secs_f64();
        println!(
            "{collective} by {candidate}, {pes} PEs, {} calls: {events} events in {s:.3} s, {:.2} \
             million a second; {} MiB",
            CALLS * TIMES,
            events as f64 / s / 1e6,
            most_memory_mib()
        );
    }
}
