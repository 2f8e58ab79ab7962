//! `consort sim`: a collective on a machine that is described, not had.

mod contention;
pub(crate) mod program;

use anyhow::Result;
use consort::{Candidate, Collective, Rank, Sync};
use consort_sim::{Simulation, machines::Machine};

use self::program::{Program, median_ns};
use crate::bench::session::Mode;

/// Simulate
#[derive(clap::Args)]
pub(crate) struct Sim {
    what: String,
    #[arg(long)]
    k: Vec<u64>,
    #[arg(long, value_delimiter = ',')]
    lines: Vec<usize>,
    #[arg(long)]
    algorithm: Vec<Candidate>,
    #[arg(long)]
    near: bool,
    #[arg(long)]
    uncontended: bool,
    #[arg(long)]
    fitted: bool,
    #[arg(long, default_value = "3")]
    calls: u64,
    #[arg(long)]
    throughput: bool,
}

impl Sim {
    pub(crate) fn run(&self) -> Result<()> {
        let machine = Machine::find("scc")?;
        if self.what == "t7" {
            for a in [contention::Access::Get, contention::Access::Put] {
                let lines = if a == contention::Access::Get { 128 } else { 1 };
                for n in [1, 2, 8, 16, 24, 32, 40, 48] {
                    let c = contention::contention(
                        &Simulation::on(machine.clone(), 48),
                        a,
                        n,
                        lines * 32,
                        1e6,
                    )?;
                    println!(
                        "{a:?} {n} mean {:.2} fastest {:.2} slowest {:.2} ratio {:.2}",
                        c.mean_ns,
                        c.fastest_ns,
                        c.slowest_ns,
                        c.slowest_ns / c.fastest_ns
                    );
                }
            }
        }
        for candidate in &self.algorithm {
            for &lines in &self.lines {
                let mut simulation = Simulation::on(machine.clone(), 48);
                if self.near {
                    simulation = simulation.near();
                }
                if self.uncontended {
                    simulation = simulation.uncontended();
                }
                if self.fitted {
                    simulation = simulation.fitted();
                }
                let program = Program {
                    collective: Collective::Broadcast,
                    candidate: candidate.clone(),
                    sync: Sync::MINE,
                    root: Rank(0),
                    bytes: lines * 32,
                    symmetric: false,
                    mode: if self.throughput { Mode::Throughput } else { Mode::Latency },
                    calls: self.calls,
                };
                let t = std::time::Instant::now();
                let played = program.play(&simulation, 48)?;
                let ns = median_ns(&played.calls_ns)?;
                println!(
                    "{candidate} {lines} lines: {:.2} us {:.2} MB/s, {} events, {:.0} ns an event",
                    ns / 1e3,
                    (lines * 32) as f64 / ns * 1e3,
                    played.outcome.events,
                    t.elapsed().as_nanos() as f64 / played.outcome.events as f64
                );
            }
        }
        Ok(())
    }
}
