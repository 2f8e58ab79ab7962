//! How fast the simulator is: events a second for small messages among thousands of PEs.
//!
//! `cargo run --release -p consort-sim --example speed [PES]`, one line a collective: the calls,
//! how many events they take, how long that takes, and how much memory the process has used so far.
//! Calls are those of a cluster of LogGP nodes, of 8 bytes, each after all have left the one
//! before.

use std::time::Instant;

use consort_collectives::{Algorithm, Plan, Setting, Visitor, visit};
use consort_fabric::{Candidate, Collective, Kernel, Op, OperatorClass, Rank, Sum, Sync};
use consort_sim::{Buffer, Operands, Outcome, Pe, Simulation, machines::Machine};

/// Calls of a simulation: as many as need no flow control.
const CALLS: u32 = 4;
/// Simulations of each.
const TIMES: u32 = 5;
const BYTES: usize = 8;

struct Calls<'c> {
    simulation: &'c Simulation,
    candidate: &'c Candidate,
    collective: Collective,
    setting: Setting,
}

impl Visitor for Calls<'_> {
    type Output = Outcome<Op>;

    fn visit<A: Algorithm>(self) -> Outcome<Op> {
        let Self { simulation, candidate, collective, setting } = self;
        let member = async |pe: &Pe<'_>| -> Op {
            let plan = Plan::<A>::new(collective, &setting.at(pe.rank()), candidate, candidate);
            let plan = plan.expect("it can serve");
            for _ in 0..CALLS {
                pe.align().await;
                let operands = Operands {
                    kernel: Some(Kernel::new::<u64, _>(&Sum)),
                    source: Buffer::Owned(vec![1; BYTES]),
                    target: Buffer::Owned(vec![0; BYTES]),
                    layouts: None,
                };
                plan.run(&pe.begin(operands).await).await?;
            }
            Ok(())
        };
        simulation.run(member).expect("it comes to an end")
    }
}

/// The most memory that the process has used, in MiB, where the system says it.
fn most_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() {
    let pes = std::env::args().nth(1).map_or(4096, |pes| pes.parse().expect("a number of PEs"));
    let machine = Machine::find("cluster").expect("it is shipped");
    let simulation = Simulation::on(machine, pes);
    for (collective, candidate) in [
        (Collective::Barrier, "dissemination(radix=2)"),
        (Collective::Broadcast, "knomial(radix=2)"),
        (Collective::Reduce, "knomial(radix=2)"),
    ] {
        let candidate: Candidate = candidate.parse().expect("a candidate");
        let setting = Setting {
            collective,
            rank: Rank(0),
            pes,
            root: Rank(0),
            bytes: BYTES,
            element_bytes: BYTES,
            operator: OperatorClass::Commutative,
            sync: Sync::MINE,
            symmetric: false,
            capabilities: simulation.capabilities().expect("the machine has these PEs"),
            first_slot: Setting::first_slot(collective, pes),
            beside: false,
            counter: 1,
        };
        let began = Instant::now();
        let mut events = 0;
        for _ in 0..TIMES {
            let calls =
                Calls { simulation: &simulation, candidate: &candidate, collective, setting };
            let outcome = visit(collective, &candidate.algorithm, calls).expect("it is known");
            events += outcome.events;
        }
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
