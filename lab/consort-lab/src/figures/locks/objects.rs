//! T12: queues and stacks, on the TILE-Gx.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    containers::{Contained, lcrq, treiber},
    curves::{Curves, most},
    delegation::MAX_OPS,
    machines::{OPTERON, TILE, TILES, XEON, tile},
    report::Report,
    run::{Point, Slots, Way},
    x86_objects,
};

/// The numbers of threads; the first leaves one beside two servers.
const THREADS: [u32; 6] = [3, 5, 10, 15, 25, TILES];

/// So many threads on the TILE-Gx.
fn on_tile(object: Contained, way: Way, threads: u32) -> Result<Point> {
    tile(way, threads, 0).run_on(&object)
}

/// A kind of container, with its name.
type Kind = (&'static str, fn(u32) -> Result<Point>);

/// Figure 6.8a, and `HYBLOCK-1`, which it leaves out.
pub(super) const QUEUES: [Kind; 8] = [
    ("MP-SERVER-1", |threads| on_tile(Contained::Queue, Way::Mp, threads)),
    ("HYBCOMB-1", |threads| on_tile(Contained::Queue, Way::HybComb(MAX_OPS), threads)),
    ("SHM-SERVER-1", |threads| on_tile(Contained::Queue, Way::Shm(Slots::default()), threads)),
    ("CC-SYNCH-1", |threads| on_tile(Contained::Queue, Way::CcSynch(MAX_OPS), threads)),
    ("MP-SERVER-2", |threads| on_tile(Contained::QueueOfTwo, Way::Mp, threads)),
    ("HYBLOCK-2", |threads| on_tile(Contained::QueueOfTwo, Way::HybLock, threads)),
    ("HYBLOCK-1", |threads| on_tile(Contained::Queue, Way::HybLock, threads)),
    ("LCRQ", |threads| lcrq(&tile(Way::FetchAdd, threads, 0))),
];

/// Figure 6.8b.
pub(super) const STACKS: [Kind; 6] = [
    ("MP-SERVER", |threads| on_tile(Contained::Stack, Way::Mp, threads)),
    ("HYBCOMB", |threads| on_tile(Contained::Stack, Way::HybComb(MAX_OPS), threads)),
    ("SHM-SERVER", |threads| on_tile(Contained::Stack, Way::Shm(Slots::default()), threads)),
    ("CC-SYNCH", |threads| on_tile(Contained::Stack, Way::CcSynch(MAX_OPS), threads)),
    ("HYBLOCK", |threads| on_tile(Contained::Stack, Way::HybLock, threads)),
    ("Treiber", |threads| treiber(&tile(Way::FetchAdd, threads, 0))),
];

/// T12: queues and stacks on the TILE-Gx under balanced load (section 6.2.4, figure 6.8), and
/// counters, stacks and queues on x86. The third best of the paper's queues has one server or
/// combiner over shared memory.
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE, XEON, OPTERON]);
    let [queues, stacks] = [&QUEUES[..], &STACKS]
        .map(|kinds| Curves::run(kinds.iter().copied(), &THREADS, |kind, threads| kind(threads)));
    let (queues, stacks) = (queues?, stacks?);
    report.curves(("queues, Mops/s", "threads"), &queues, |point| point.mops);
    report.curves(("stacks, Mops/s", "threads"), &stacks, |point| point.mops);
    let shared = ["SHM-SERVER-1", "CC-SYNCH-1"];
    let [mp, hybcomb] =
        ["MP-SERVER-1", "HYBCOMB-1"].map(|name| most(queues.gains(name, &shared, ..)));
    report.add(TILE, "6.8a MP-SERVER-1 / best over shared memory", "x", mp);
    report.add(TILE, "6.8a HYBCOMB-1 / best over shared memory", "x", hybcomb);
    let at_all = |name, other| queues.gains(name, &[other], TILES..)[0];
    let two = report.add(TILE, "6.8a HYBLOCK-2 / HYBLOCK-1", "x", at_all("HYBLOCK-2", "HYBLOCK-1"));
    let lcrq = report.add(TILE, "6.8a LCRQ / HYBLOCK-2", "x", at_all("LCRQ", "HYBLOCK-2"));
    for (stack, queue) in [("MP-SERVER", "MP-SERVER-1"), ("HYBCOMB", "HYBCOMB-1")] {
        let ratio = stacks.at(stack, TILES).mops / queues.at(queue, TILES).mops;
        report.add(TILE, format!("6.8b {stack}, stack / queue"), "x", ratio);
    }
    let others = STACKS.map(|(name, _)| name);
    let treiber =
        most(others[..5].iter().map(|name| stacks.gains("Treiber", &[name], TILES..)[0]).collect());
    let treiber = report.add(TILE, "6.8b Treiber / slowest other", "x", treiber);
    x86_objects::compare(&mut report)?;
    report.finish(format!(
        "queues: MP-SERVER up to {mp:.1} and HYBCOMB up to {hybcomb:.1} times the best over shared \
         memory with one lock (paper: 2 and 1.5); HYBLOCK with two locks {two:.1} times that with \
         one (almost 2), LCRQ {lcrq:.1} times HYBLOCK (similar); Treiber's stack {treiber:.1} \
         times the slowest other (less)"
    ))
}
