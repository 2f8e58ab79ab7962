//! T12: queues and stacks.

use std::cell::{Cell, OnceCell};

use anyhow::Result;
use consort_fabric::{Line, Machine as _};
use consort_sim::SimulatedThread;
use consort_sync::{
    delegation::{Scheme, ServerScheme},
    objects::{Container, Lcrq, Object, Queue, Sequential, Stack, Treiber},
};

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::MAX_OPS,
    machines::{TILE, TILES, tile},
    report::Report,
    run::{Point, Setting, Slots, Subject, Way},
};

/// The cells of a ring of LCRQ: few enough that all are used before the measurement begins.
const RING_CELLS: usize = 1 << 10;

/// The numbers of threads; the first leaves one beside two servers.
const THREADS: [u32; 6] = [3, 5, 10, 15, 25, TILES];

/// Sequential code under one scheme or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contained {
    Stack,
    Queue,
    QueueOfTwo,
}

/// Puts and takes in turn. The container is empty at the beginning.
async fn in_turn<C: Container>(setting: &Setting, m: &SimulatedThread, container: &C) {
    let (local, takes) = (C::Local::default(), Cell::new(true));
    let operation = async || {
        takes.set(!takes.get());
        if takes.get() {
            let Ok(_) = container.take(m, &local).await;
        } else {
            let Ok(()) = container.put(m, &local, 1).await;
        }
    };
    setting.repeat(m, operation).await;
}

fn alone<C: Container>(setting: &Setting, make: impl Fn(&SimulatedThread) -> C) -> Result<Point> {
    let container = OnceCell::new();
    let outcome = setting.simulate(async |m: SimulatedThread| {
        in_turn(setting, &m, container.get_or_init(|| make(&m))).await;
    })?;
    Ok(setting.point(outcome, 0))
}

/// The first threads are the servers of the parts.
fn served<S: ServerScheme, D: Sequential>(
    setting: &Setting,
    make: impl Fn(&SimulatedThread) -> Object<S, D>,
    lines: impl Fn(&S) -> &[Line],
) -> Result<Point>
where
    Object<S, D>: Container,
{
    let object = OnceCell::new();
    let outcome = setting.simulate(async |m: SimulatedThread| {
        let object = object.get_or_init(|| make(&m));
        if let Some(&part) = object.parts().get(m.thread().0 as usize) {
            m.announce(lines(object.scheme(part)));
            let Ok(()) = object.run(&m, part).await;
        } else {
            in_turn(setting, &m, object).await;
        }
    })?;
    Ok(setting.point(outcome, object.get().map_or(0, |object| object.parts().len())))
}

impl Subject for Contained {
    fn apply<S: Scheme>(&self, setting: &Setting, scheme: impl Fn() -> S) -> Result<Point> {
        match self {
            Self::Stack => alone(setting, |_| Stack::new(scheme())),
            Self::Queue => alone(setting, |m| Queue::new(m, scheme())),
            Self::QueueOfTwo => alone(setting, |m| Queue::with_two(m, scheme(), scheme())),
        }
    }

    fn serve<S: ServerScheme>(
        &self,
        setting: &Setting,
        scheme: impl Fn() -> S,
        lines: impl Fn(&S) -> &[Line],
    ) -> Result<Point> {
        match self {
            Self::Stack => served(setting, |_| Stack::new(scheme()), lines),
            Self::Queue => served(setting, |m| Queue::new(m, scheme()), lines),
            Self::QueueOfTwo => served(setting, |m| Queue::with_two(m, scheme(), scheme()), lines),
        }
    }
}

impl Contained {
    /// So many threads on the TILE-Gx.
    fn on_tile(self, way: Way, threads: u32) -> Result<Point> {
        tile(way, threads, 0).run_on(&self)
    }
}

/// Treiber's stack.
fn treiber(threads: u32) -> Result<Point> {
    alone(&tile(Way::FetchAdd, threads, 0), |_| Treiber::new())
}

/// LCRQ.
fn lcrq(threads: u32) -> Result<Point> {
    alone(&tile(Way::FetchAdd, threads, 0), |m| Lcrq::new(m, RING_CELLS))
}

/// A kind of container, with its name.
type Kind = (&'static str, fn(u32) -> Result<Point>);

/// Figure 6.8a, and `HYBLOCK-1`, which it leaves out.
pub(super) const QUEUES: [Kind; 8] = [
    ("MP-SERVER-1", |threads| Contained::Queue.on_tile(Way::Mp, threads)),
    ("HYBCOMB-1", |threads| Contained::Queue.on_tile(Way::HybComb(MAX_OPS), threads)),
    ("SHM-SERVER-1", |threads| Contained::Queue.on_tile(Way::Shm(Slots::default()), threads)),
    ("CC-SYNCH-1", |threads| Contained::Queue.on_tile(Way::CcSynch(MAX_OPS), threads)),
    ("MP-SERVER-2", |threads| Contained::QueueOfTwo.on_tile(Way::Mp, threads)),
    ("HYBLOCK-2", |threads| Contained::QueueOfTwo.on_tile(Way::HybLock, threads)),
    ("HYBLOCK-1", |threads| Contained::Queue.on_tile(Way::HybLock, threads)),
    ("LCRQ", lcrq),
];

/// Figure 6.8b.
pub(super) const STACKS: [Kind; 6] = [
    ("MP-SERVER", |threads| Contained::Stack.on_tile(Way::Mp, threads)),
    ("HYBCOMB", |threads| Contained::Stack.on_tile(Way::HybComb(MAX_OPS), threads)),
    ("SHM-SERVER", |threads| Contained::Stack.on_tile(Way::Shm(Slots::default()), threads)),
    ("CC-SYNCH", |threads| Contained::Stack.on_tile(Way::CcSynch(MAX_OPS), threads)),
    ("HYBLOCK", |threads| Contained::Stack.on_tile(Way::HybLock, threads)),
    ("Treiber", treiber),
];

/// Millions of operations a second: of each kind, by threads.
fn mops(kinds: &[Kind]) -> Result<Vec<Vec<f64>>> {
    let of = |kind: fn(u32) -> Result<Point>| THREADS.iter().map(move |&threads| kind(threads));
    kinds.iter().map(|&(_, kind)| of(kind).map(|point| Ok(point?.mops)).collect()).collect()
}

fn add_table(report: &mut Report, what: &str, kinds: &[Kind], mops: &[Vec<f64>]) {
    let header: Vec<String> = THREADS.iter().map(u32::to_string).collect();
    let what = format!("{what}, Mops/s by threads");
    let header: Vec<&str> =
        [what.as_str()].into_iter().chain(header.iter().map(String::as_str)).collect();
    let rows = kinds.iter().zip(mops).map(|((name, _), mops)| {
        let cells = mops.iter().map(|mops| format!("{mops:.1}"));
        std::iter::once((*name).to_owned()).chain(cells).collect()
    });
    report.table(&header, rows.collect());
}

/// T12: queues and stacks on the TILE-Gx under balanced load (section 6.2.4, figure 6.8). The third
/// best of the paper's queues has one server or combiner over shared memory.
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let (queues, stacks) = (mops(&QUEUES)?, mops(&STACKS)?);
    add_table(&mut report, "queues", &QUEUES, &queues);
    add_table(&mut report, "stacks", &STACKS, &stacks);
    let over_third = |mops: &[f64]| {
        let third = queues[2].iter().zip(&queues[3]).map(|(shm, cc)| shm.max(*cc));
        mops.iter().zip(third).map(|(mops, third)| mops / third).fold(0.0, f64::max)
    };
    let (mp, hybcomb) = (over_third(&queues[0]), over_third(&queues[1]));
    report.add(TILE, "queue, MP-SERVER-1 / best over shared memory", "x", mp);
    report.add(TILE, "queue, HYBCOMB-1 / best over shared memory", "x", hybcomb);
    let at_all = |mops: &[Vec<f64>]| mops.iter().map(|mops| mops[mops.len() - 1]).collect();
    let (queues, stacks): (Vec<f64>, Vec<f64>) = (at_all(&queues), at_all(&stacks));
    let two = report.add(TILE, "queue, HYBLOCK-2 / HYBLOCK-1", "x", queues[5] / queues[6]);
    let lcrq = report.add(TILE, "queue, LCRQ / HYBLOCK-2", "x", queues[7] / queues[5]);
    report.add(TILE, "MP-SERVER, stack / queue", "x", stacks[0] / queues[0]);
    report.add(TILE, "HYBCOMB, stack / queue", "x", stacks[1] / queues[1]);
    let least = stacks[..5].iter().copied().fold(f64::INFINITY, f64::min);
    report.finish(format!(
        "queues: MP-SERVER up to {mp:.1} and HYBCOMB up to {hybcomb:.1} times the best over shared \
         memory with one lock (paper: 2 and 1.5); HYBLOCK with two locks {two:.1} times that with \
         one (almost 2), LCRQ {lcrq:.1} times HYBLOCK (similar); Treiber's stack {:.1} times the \
         slowest other (less)",
        stacks[5] / least,
    ))
}
