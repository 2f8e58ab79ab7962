//! T8: queue locks and HYBLOCK.

use anyhow::Result;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        figure::Figure,
        quantity::Quantity,
    },
    curves::{Curves, least, most},
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::{Point, Way},
};

figures! { pub FIGURES of "T8", "section 6.2.3, figure 6.4":
    // With 36 threads unless stated otherwise.
    "x":
    COUNTER("6.4a counter, HYBLOCK / queue lock", TILE == 1.35)
    FEW_THREADS("6.4a HYBLOCK / queue locks, 2 to 5 threads", TILE >= 1.0)
    MANY_THREADS("6.4a HYBLOCK / TAS, 30 threads and more", TILE >= 1.0)
    ALL_TAS("6.4a TAS, 36 threads / 1", TILE <= 1.0)
    ALONE("6.4b HYBLOCK / queue lock, 1 thread", TILE <= 1.0)
    ALONE_TAS("6.4b TAS / HYBLOCK, 1 thread", TILE <= 1.0)
    FEW_MCS("6.4b MCS / CLH, 2 to 4 threads, most", TILE >= 1.0)
    // "nearly indistinguishable performance, except with 2-4 threads".
    ALONE_QUEUES("6.4b MCS / CLH, 1 thread", TILE == 1.0)
    MANY_MCS("6.4b MCS / CLH, 5 threads and more, most", TILE == 1.0)
    EMPTY("6.4c empty, HYBLOCK / queue lock", TILE == 2.0)
    LONG("6.4c 25, HYBLOCK / queue lock", TILE == 1.18)
}

/// The locks of the thesis.
pub(super) const LOCKS: [(&str, Way); 4] = [
    ("TAS", Way::PlainTestAndSet),
    ("MCS", Way::Mcs),
    ("CLH", Way::Clh),
    ("HYBLOCK", Way::HybLock),
];
/// The library's test-and-set lock, which the thesis does not have.
const WITH_BACKOFF: (&str, Way) = ("TAS with backoff", Way::TestAndSet);

/// The queue locks over shared memory.
const QUEUES: [&str; 2] = ["MCS", "CLH"];

const THREADS: [u32; 11] = [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, TILES];

/// T8: locks on the TILE-Gx (section 6.2.3, figure 6.4).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let locks = || LOCKS.into_iter().chain([WITH_BACKOFF]);
    let counter = Curves::run(locks(), &THREADS, |way, threads| on_tile(way.clone(), threads, 1))?;
    report.curves(("Mops/s", "threads"), &counter, |point| point.mops);
    report.curves(("ns", "threads"), &counter, Point::latency_ns);
    let sections = Curves::run(locks(), &[0, 1, 5, 10, 15, 20, 25], |way, increments| {
        on_tile(way.clone(), TILES, increments as usize)
    })?;
    report.curves(("Mops/s", "increments"), &sections, |point| point.mops);
    throughput(&mut report, &counter);
    latency(&mut report, &counter);
    let mut ratios = Vec::new();
    for (increments, figure) in [(1, &COUNTER), (0, &EMPTY), (25, &LONG)] {
        for other in QUEUES {
            let ratio = sections.gains("HYBLOCK", &[other], increments..=increments)[0];
            ratios.push(report.add(over(figure, other), ratio));
        }
    }
    Ok(report.finish(format!(
        "HYBLOCK {:.2} and {:.2} times MCS and CLH (paper: 1.35), {:.2} and {:.2} with an empty \
         section (2), {:.2} and {:.2} with 25 increments (1.18)",
        ratios[0], ratios[1], ratios[2], ratios[3], ratios[4], ratios[5],
    )))
}

/// Returns a figure for one of the queue locks. The thesis gives one value or limit for both.
fn over(figure: &'static Figure, other: &str) -> Quantity {
    figure.on(TILE).named(&format!(", {other}"))
}

/// Figure 6.4a.
fn throughput(report: &mut Report, counter: &Curves) {
    let few = least(counter.gains("HYBLOCK", &QUEUES, 2..=5));
    report.add(FEW_THREADS.on(TILE), few);
    let many = least(counter.gains("HYBLOCK", &["TAS"], 30..));
    report.add(MANY_THREADS.on(TILE), many);
    let tas = |threads| counter.at("TAS", threads).mops;
    report.add(ALL_TAS.on(TILE), tas(TILES) / tas(1));
}

/// Figure 6.4b.
fn latency(report: &mut Report, counter: &Curves) {
    for (name, _) in LOCKS.into_iter().chain([WITH_BACKOFF]) {
        let alone = counter.at(name, 1).latency_ns();
        report.add_other(TILE, format!("6.4b {name}, 1 thread"), "ns", alone);
    }
    let alone = |name, other| counter.delays(name, &[other], 1..=1)[0];
    for other in QUEUES {
        report.add(over(&ALONE, other), alone("HYBLOCK", other));
    }
    report.add(ALONE_TAS.on(TILE), alone("TAS", "HYBLOCK"));
    report.add(ALONE_QUEUES.on(TILE), alone("MCS", "CLH"));
    let few = most(counter.delays("MCS", &["CLH"], 2..=4));
    report.add(FEW_MCS.on(TILE), few);
    let many = most(counter.delays("MCS", &["CLH"], 5..));
    report.add(MANY_MCS.on(TILE), many);
}
