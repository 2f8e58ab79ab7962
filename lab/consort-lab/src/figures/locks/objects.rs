//! T12: queues and stacks, on the TILE-Gx.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    containers::{Contained, lcrq, treiber},
    curves::{Curves, least, most},
    delegation::MAX_OPS,
    machines::{TILE, TILE_SLOTS, TILES, tile},
    report::Report,
    run::{Point, Way},
    x86_objects,
};

figures! { pub FIGURES of "T12", "section 6.2.4, figure 6.8":
    // "up to 2x and 1.5x higher throughput than the third best"; "the single-lock MS-Queues perform
    // best"; "almost twofold"; "similar to that of the HYBLOCK queue"; "the numbers nearly match".
    "x":
    MP_SERVER_LEAD("6.8a MP-SERVER-1 / best but HYBCOMB-1", TILE == 2.0)
    HYBCOMB_LEAD("6.8a HYBCOMB-1 / best but MP-SERVER-1", TILE == 1.5)
    ONE_LOCK("6.8a slowest with one lock / best of the others", TILE >= 1.0)
    SECOND_LOCK("6.8a HYBLOCK-2 / HYBLOCK-1", TILE == 2.0)
    LCRQ("6.8a LCRQ / HYBLOCK-2", TILE == 1.0)
    MP_SERVER_STACK("6.8b MP-SERVER, stack / queue", TILE == 1.0)
    HYBCOMB_STACK("6.8b HYBCOMB, stack / queue", TILE == 1.0)
    TREIBER("6.8b Treiber / slowest other", TILE <= 1.0)
}

/// The numbers of threads. The first leaves one thread next to two servers.
const THREADS: [u32; 6] = [3, 5, 10, 15, 25, TILES];

/// Runs `threads` threads on the TILE-Gx.
fn on_tile(object: Contained, way: Way, threads: u32) -> Result<Point> {
    tile(way, threads, 0).run_on(&object)
}

/// A kind of container, with its name.
type Kind = (&'static str, fn(u32) -> Result<Point>);

/// Figure 6.8a, and `HYBLOCK-1`, which it leaves out.
pub(super) const QUEUES: [Kind; 8] = [
    ("MP-SERVER-1", |threads| on_tile(Contained::Queue, Way::Mp, threads)),
    ("HYBCOMB-1", |threads| on_tile(Contained::Queue, Way::HybComb(MAX_OPS), threads)),
    ("SHM-SERVER-1", |threads| on_tile(Contained::Queue, Way::Shm(TILE_SLOTS), threads)),
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
    ("SHM-SERVER", |threads| on_tile(Contained::Stack, Way::Shm(TILE_SLOTS), threads)),
    ("CC-SYNCH", |threads| on_tile(Contained::Stack, Way::CcSynch(MAX_OPS), threads)),
    ("HYBLOCK", |threads| on_tile(Contained::Stack, Way::HybLock, threads)),
    ("Treiber", |threads| treiber(&tile(Way::FetchAdd, threads, 0))),
];

/// The queues with one lock that figure 6.8a has, and the others.
const ONE_LOCK_QUEUES: [&str; 4] = ["MP-SERVER-1", "HYBCOMB-1", "SHM-SERVER-1", "CC-SYNCH-1"];
const OTHER_QUEUES: [&str; 3] = ["MP-SERVER-2", "HYBLOCK-2", "LCRQ"];

/// T12: queues and stacks on the TILE-Gx under balanced load (section 6.2.4, figure 6.8), and
/// counters, stacks and queues on x86.
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let [queues, stacks] = [&QUEUES[..], &STACKS]
        .map(|kinds| Curves::run(kinds.iter().copied(), &THREADS, |kind, threads| kind(threads)));
    let (queues, stacks) = (queues?, stacks?);
    report.curves(("queues, Mops/s", "threads"), &queues, |point| point.mops);
    report.curves(("stacks, Mops/s", "threads"), &stacks, |point| point.mops);
    // In the paper, the third best is neither of these two.
    let [_, _, rest @ ..] = ONE_LOCK_QUEUES;
    let third: Vec<&str> = rest.into_iter().chain(OTHER_QUEUES).collect();
    let [mp, hybcomb] =
        ["MP-SERVER-1", "HYBCOMB-1"].map(|name| most(queues.gains(name, &third, ..)));
    report.add(MP_SERVER_LEAD.on(TILE), mp);
    report.add(HYBCOMB_LEAD.on(TILE), hybcomb);
    // The third best is not LCRQ if the sentence is about queues with one lock alone.
    for name in ["MP-SERVER-1", "HYBCOMB-1"] {
        let third = most(queues.gains(name, &rest, ..));
        let what = format!("6.8a {name} / best of {} and {}", rest[0], rest[1]);
        report.add_other(TILE, what, "x", third);
    }
    let one_lock =
        ONE_LOCK_QUEUES.map(|name| queues.gains(name, &OTHER_QUEUES, TILES..)[0]).to_vec();
    report.add(ONE_LOCK.on(TILE), least(one_lock));
    let at_all = |name, other| queues.gains(name, &[other], TILES..)[0];
    let two = report.add(SECOND_LOCK.on(TILE), at_all("HYBLOCK-2", "HYBLOCK-1"));
    let lcrq = report.add(LCRQ.on(TILE), at_all("LCRQ", "HYBLOCK-2"));
    let over = |stack, queue| stacks.at(stack, TILES).mops / queues.at(queue, TILES).mops;
    report.add(MP_SERVER_STACK.on(TILE), over("MP-SERVER", "MP-SERVER-1"));
    report.add(HYBCOMB_STACK.on(TILE), over("HYBCOMB", "HYBCOMB-1"));
    let others = STACKS.map(|(name, _)| name);
    let treiber =
        most(others[..5].iter().map(|name| stacks.gains("Treiber", &[name], TILES..)[0]).collect());
    let treiber = report.add(TREIBER.on(TILE), treiber);
    x86_objects::compare(&mut report)?;
    Ok(report.finish(format!(
        "queues: MP-SERVER up to {mp:.1} and HYBCOMB up to {hybcomb:.1} times the best of the \
         others (paper: 2 and 1.5); HYBLOCK with two locks {two:.1} times that with \
         one (almost 2), LCRQ {lcrq:.1} times HYBLOCK (similar); Treiber's stack {treiber:.1} \
         times the slowest other (less)"
    )))
}
