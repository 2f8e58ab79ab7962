//! T14: remote memory references.
//!
//! References of a servicing thread are counted per operation, with the lines that were prefetched
//! for it. References of a lock are counted while one thread hands it over to a waiting thread.

use std::{
    cell::Cell,
    sync::atomic::Ordering::{Relaxed, Release},
};

use anyhow::Result;
use consort_machine::{Line, Machine as _, Thread, Until};
use consort_sim::{SimulatedThread, Tally, ThreadSimulation, machines::Machine};
use consort_sync::{
    delegation::{Locked, Scheme as _, Service},
    locks::{Clh, HybLock, Mcs, RawLock},
};

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::schemes,
    machines::{TILE, TILES, on_tile},
    report::Report,
};

figures! { pub FIGURES of "T14", "sections 5.3 and 6.1": "references":
    MP_SERVER("MP-SERVER, an operation", TILE == 0.0)
    HYBCOMB("HYBCOMB, an operation", TILE == 0.0)
    SHM_SERVER("SHM-SERVER, an operation", TILE ~ 2.0)
    CC_SYNCH("CC-SYNCH, an operation", TILE ~ 2.0)
    MCS("MCS, a hand-over", TILE ~ 2.0)
    CLH("CLH, a hand-over", TILE ~ 2.0)
    HYBLOCK("HYBLOCK, a hand-over", TILE == 0.0)
}

/// The time after which a thread certainly waits for the lock, in cycles.
const ARRIVAL_CYCLES: u64 = 10_000;

/// T14: remote references of servicing threads and of hand-overs (sections 5.3 and 6.1).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let mut counts = Vec::new();
    let figures = [&MP_SERVER, &HYBCOMB, &SHM_SERVER, &CC_SYNCH];
    for ((name, way), figure) in schemes(u64::MAX).into_iter().zip(figures) {
        let [demanded, prefetched] = on_tile(way, TILES, 1)?.remote();
        report.add_other(TILE, format!("{name}, an operation, prefetched"), "lines", prefetched);
        counts.push(report.add(figure.on(TILE), demanded + prefetched));
    }
    for (figure, [flag, next]) in [
        (&MCS, hand_over::<Mcs>()?),
        (&CLH, hand_over::<Clh>()?),
        (&HYBLOCK, hand_over::<HybLock>()?),
    ] {
        if next > 0.0 {
            report.add(figure.on(TILE).unpublished().named(", reading the next node"), next);
        }
        counts.push(report.add(figure.on(TILE), flag));
    }
    Ok(report.finish(format!(
        "an operation of MP-SERVER, HYBCOMB, SHM-SERVER, CC-SYNCH: {:.1}, {:.1}, {:.1}, {:.1} \
         (paper: 0, 0, 2, 2); a hand-over of MCS, CLH, HYBLOCK: {:.0}, {:.0}, {:.0} (2, 2, 0)",
        counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], counts[6],
    )))
}

/// A section that records the tallies of both threads when the first one ends it, and when the
/// second one starts it.
#[derive(Default)]
struct Between {
    /// Word 0: the number of the turn in which the second thread must ask for the lock.
    turn: Line,
    ended: Cell<[Tally; 2]>,
    begun: Cell<[Tally; 2]>,
}

impl Service<SimulatedThread> for Between {
    async fn serve(&self, m: &SimulatedThread, turn: u64, _: u64) -> u64 {
        let both = || [0, 1].map(|thread| m.tally_of(Thread(thread)));
        if m.thread() == Thread(1) {
            self.begun.set(both());
            return 0;
        }
        m.store(&self.turn[0], turn, Release).await;
        m.pause(ARRIVAL_CYCLES).await;
        m.load(&self.turn[0], Relaxed).await;
        self.ended.set(both());
        0
    }
}

/// Returns the remote references of a hand-over to a thread that is already waiting, from the start
/// of the release to the end of the acquisition. The second number is the reads of the releasing
/// thread: it writes the flag, and the other thread reads it.
fn hand_over<R: RawLock>() -> Result<[f64; 2]> {
    #[repr(align(128))]
    struct Aligned<R>(Locked<R>);
    let (lock, between) = (Aligned(Locked::with(R::default())), Between::default());
    let simulation = ThreadSimulation::on(Machine::find(TILE)?, 2);
    simulation.run(async |m: SimulatedThread| {
        // The second turn is counted. In the first one, lines are in no cache.
        for turn in [1, 2] {
            if m.thread() == Thread(1) {
                let Ok(_) = m.wait_until(&between.turn[0], Until::Equals(turn)).await;
            }
            let Ok(_) = lock.0.apply(&m, &(), &between, turn, 0).await;
            m.pause(ARRIVAL_CYCLES).await;
        }
    })?;
    let [releasing, acquiring] =
        [0, 1].map(|thread| between.begun.get()[thread] - between.ended.get()[thread]);
    let reads = releasing.remote_reads;
    Ok([(releasing.remote() - reads + acquiring.remote()) as f64, reads as f64])
}
