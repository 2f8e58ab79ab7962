//! F8: the library's locks on machines with several sockets, by the number of threads.
//!
//! The threads are on the sockets in turn, as in the thesis, or on as few sockets as possible. Each
//! section increments a word. The measured time is long enough for several turns of the default
//! lock.

use anyhow::Result;
use consort_bench::units::counted;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::{Curves, least, most},
    machines::BOTH,
    report::Report,
    run::{MEASURED_NS, Point, Setting, Way},
};

const DEFAULT: &str = "Handoff, default";
/// The locks with which the NUMA-aware one is compared.
const OTHERS: [&str; 5] = [DEFAULT, "Ticket", "MCS", "CLH", "Hapax"];
const NUMA_AWARE: &str = "CNA";

const THREADS: [u32; 4] = [1, 2, 8, 32];
/// The measured time is this many times that of the other experiments.
const TURNS: f64 = 2.5;

/// The sockets on which the threads are.
#[derive(Clone, Copy)]
enum Sockets {
    InTurn,
    Few,
}

impl Sockets {
    const fn name(self) -> &'static str {
        match self {
            Self::InTurn => "sockets in turn",
            Self::Few => "few sockets",
        }
    }
}

/// F8: which lock is fastest on several sockets.
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let mut gains = Vec::new();
    for x86 in BOTH {
        for sockets in [Sockets::InTurn, Sockets::Few] {
            let others = [Way::Handoff, Way::Ticket, Way::Mcs, Way::Clh, Way::Hapax];
            let locks = OTHERS.into_iter().zip(others).chain([(NUMA_AWARE, Way::Cna)]);
            let curves = Curves::run(locks, &THREADS, |way, threads| {
                let setting = x86.setting(way.clone(), 0, threads - 1)?;
                let placement = match sockets {
                    Sockets::InTurn => setting.placement,
                    Sockets::Few => x86.one_per_core(threads)?,
                };
                Setting { placement, measured_ns: TURNS * MEASURED_NS, ..setting }.run()
            })?;
            let values = |unit: &str| format!("{}, {}, {unit}", x86.machine, sockets.name());
            report.curves((&values("Mops/s"), "threads"), &curves, |point| point.mops);
            let shares = values("most / least operations");
            report.curves((&shares, "threads"), &curves, Point::fairness);
            for (threads, gain) in THREADS.iter().zip(curves.gains(NUMA_AWARE, &OTHERS, ..)) {
                let threads = counted(*threads, "thread");
                let what = format!("CNA / best other, {}, {threads}", sockets.name());
                report.add_other(x86.machine, what, "x", gain);
                gains.push(gain);
            }
        }
    }
    let [least, most] = [least(gains.clone()), most(gains)];
    Ok(report.finish(format!("CNA: {least:.2} to {most:.2} times the best other lock")))
}
