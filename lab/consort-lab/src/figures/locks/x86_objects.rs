//! T12 on x86: counters, stacks and queues (sections 6.2.5 and 7.2.3, figures 7.9 to 7.11).
//!
//! Each object runs under a server without optimizations, under two servers with them, and under
//! combiners, and is compared with lock-free objects. Thread `n` is on socket `n mod 8` of the
//! Xeon.

use anyhow::Result;
use consort_sync::objects::Clusters;

use super::{
    super::figure::Figure,
    containers::{Contained, lcrq, lcrq_of_clusters, treiber},
    curves::{Curves, least},
    delegation::MAX_OPS,
    machines::{BOTH, OPTERON, TILE_SLOTS, TILES, X86, XEON, tile},
    report::Report,
    run::{MEASURED_NS, Point, SEEDS, Setting, Slots, Way},
};

figures! { pub FIGURES of "T12", "sections 6.2.5 and 7.2.3": "x":
    COUNTERS_LEAD("7.9 optimized / best other", XEON >= 1.0, OPTERON >= 1.0)
    CC_SYNCH_COUNTER("7.9 CC-SYNCH / srv-base", XEON == 1.0, OPTERON == 1.0)
    H_SYNCH_COUNTER("7.9 H-SYNCH / CC-SYNCH", XEON >= 1.0)
    FETCH_AND_ADD("7.9 fetch-and-add, 158 clients / 79", XEON >= 1.0)
    STACKS_LEAD("7.10 optimized / best other", XEON >= 1.0, OPTERON >= 1.0)
    BACKOFF_STACK("7.10 srv-B, stack / counter", XEON <= 1.0, OPTERON <= 1.0)
    CC_SYNCH_STACK("7.10 CC-SYNCH, stack / counter", XEON == 1.0, OPTERON == 1.0)
    OPTERON_OVER_XEON("7.10 stack / counter, over the Xeon's", OPTERON <= 1.0)
    TWO_OF_BASE("7.11 srv-base, two locks / one", XEON >= 1.0, OPTERON >= 1.0)
    TWO_OF_BACKOFF("7.11 srv-B, two locks / one", OPTERON == 1.0)
    TWO_OF_CC_SYNCH("7.11 CC-SYNCH, two locks / one", XEON >= 1.0, OPTERON >= 1.0)
    TWO_OF_H_SYNCH("7.11 H-SYNCH, two locks / one", XEON >= 1.0)
    BACKOFF_OVER_BASE("7.11 the same, srv-B's / srv-base's", XEON <= 1.0, OPTERON <= 1.0)
    QUEUES_LEAD("7.11 optimized / best other", OPTERON >= 1.0)
    QUEUES_LEAD_OF_XEON("7.11 optimized / best other but LCRQ+H", XEON >= 1.0)
    CLUSTERED_LEAD("7.11 LCRQ+H / optimized", XEON >= 1.0)
    CLUSTERED_FAIRNESS("7.11 LCRQ+H, most / least operations", XEON == 1.4)
    LONG_TURN_FAIRNESS("7.2.3 LCRQ+H, 1 Mcycle, most / least operations", XEON == 4.0)
    BACKOFF_FAIRNESS("7.11 srv-B, most / least operations", XEON == 1.0, OPTERON == 1.0)
    DIE_MCS("6.2.5 MCS, a die / tile-gx36", XEON <= 1.0, OPTERON <= 1.0)
    DIE_CC_SYNCH("6.2.5 CC-SYNCH, a die / tile-gx36", XEON <= 1.0, OPTERON <= 1.0)
    DIE_SHM_SERVER("6.2.5 SHM-SERVER, a die / tile-gx36", XEON <= 1.0, OPTERON <= 1.0)
    DIE_LCRQ("6.2.5 LCRQ, a die / tile-gx36", XEON >= 1.0, OPTERON >= 1.0)
    DIE_TWO("6.2.5 CC-SYNCH on a die, two locks / one", XEON >= 1.0, OPTERON >= 1.0)
    // "proportionally larger numbers than on the TILE-Gx".
    CC_SYNCH_STALLS("6.2.5 CC-SYNCH, share stalled, a die / tile-gx36", XEON >= 1.0, OPTERON >= 1.0)
    SERVER_STALLS("6.2.5 SHM-SERVER, share stalled, a die / tile-gx36", XEON >= 1.0, OPTERON >= 1.0)
    "Mops/s":
    LONG_TURN_RATE("7.2.3 LCRQ+H, 1 Mcycle", XEON >= 30.0)
}

const BASE: &str = "srv-base";
const BACKOFF: &str = "srv-B";
const STREAMING: &str = "srv-SS";
const CC: &str = "CC-SYNCH";
const H: &str = "H-SYNCH";
const ADD: &str = "fetch-and-add";
const TREIBER: &str = "Treiber";
const LCRQ: &str = "LCRQ";

/// The cycles for which LCRQ+H waits for the turn of a socket (section 7.2.3).
const TURN_CYCLES: f64 = 400_000.0;
/// The same, for a higher rate and lower fairness.
const LONG_TURN_CYCLES: f64 = 1_000_000.0;
/// The number of cycles of the Xeon in a nanosecond.
const XEON_GHZ: f64 = 2.13;
/// LCRQ+H is measured this many times as long, so that each socket has several turns.
const TURNS: f64 = 50.0;

/// Ways with their names.
type Ways = Vec<(&'static str, Way)>;

impl X86 {
    /// Returns the server without optimizations, the servers with those of section 7.2.3, and
    /// combiners. H-SYNCH is only for the Xeon, as in the thesis.
    fn ways(self) -> Ways {
        let base = self.slots();
        let backoff = Slots { backoff: Some(self.backoff), ..base };
        // The thesis combines streaming stores with backoff where the combination is faster.
        let combined = (self.machine == XEON).then_some(self.streaming_backoff);
        let streaming = Slots { streams: true, backoff: combined, ..base };
        let mut ways = vec![
            (BASE, Way::Shm(base)),
            (BACKOFF, Way::Shm(backoff)),
            (STREAMING, Way::Shm(streaming)),
            (CC, Way::CcSynch(MAX_OPS)),
        ];
        if self.machine == XEON {
            ways.push((H, Way::HSynch(MAX_OPS)));
        }
        ways
    }

    fn numbers(self) -> [u32; 5] {
        [1, 5, 20, self.clients / 2, self.clients]
    }

    /// Adds the slower of the optimized servers over the fastest other way, "in high concurrency
    /// levels": with all clients, and with half of them.
    fn add_lead(
        self,
        figure: &'static Figure,
        curves: &Curves,
        others: &[&str],
        report: &mut Report,
    ) {
        for (clients, which) in [(self.clients, "all"), (self.clients / 2, "half the")] {
            let lead = |name| curves.gains(name, others, clients..=clients);
            let quantity = figure.on(self.machine).named(&format!(", {which} clients"));
            report.add(quantity, least([lead(BACKOFF), lead(STREAMING)].concat()));
        }
    }

    /// Returns the highest rate of a server with backoff and a stack, relative to a counter's.
    fn drop(self, seed: u64) -> Result<f64> {
        let way = Way::Shm(Slots { backoff: Some(self.backoff), ..self.slots() });
        let (mut stack, mut counter) = (0.0_f64, 0.0_f64);
        for clients in self.numbers() {
            let setting = Setting { seed, ..self.setting(way.clone(), 1, clients)? };
            stack = stack.max(setting.run_on(&Contained::Stack)?.mops);
            counter = counter.max(setting.run()?.mops);
        }
        Ok(stack / counter)
    }
}

/// Adds counters, stacks and queues on both machines, and the differences from the TILE-Gx.
///
/// # Errors
/// When a simulation fails.
pub(super) fn compare(report: &mut Report) -> Result<()> {
    let mut drops = Vec::new();
    for x86 in BOTH {
        let counters = counters(x86, report)?;
        drops.push(stacks(x86, &counters, report)?);
        queues(x86, report)?;
        on_a_die(x86, report)?;
    }
    let ratios = drops[1].iter().zip(&drops[0]).map(|(opteron, xeon)| opteron / xeon).collect();
    report.add_spread(&OPTERON_OVER_XEON.on(OPTERON), ratios);
    Ok(())
}

/// Figure 7.9.
fn counters(x86: X86, report: &mut Report) -> Result<Curves> {
    let X86 { machine, clients, .. } = x86;
    let mut ways = x86.ways();
    ways.push((ADD, Way::FetchAdd));
    let others: Vec<&str> = ways.iter().map(|(name, _)| *name).skip(3).collect();
    let curves = Curves::run(ways, &x86.numbers(), |way, clients| {
        x86.setting(way.clone(), 1, clients)?.run()
    })?;
    report
        .curves((&format!("{machine}, counters, Mops/s"), "clients"), &curves, |point| point.mops);
    x86.add_lead(&COUNTERS_LEAD, &curves, &others, report);
    let cc = curves.gains(CC, &[BASE], clients..)[0];
    report.add(CC_SYNCH_COUNTER.on(machine), cc);
    if machine == XEON {
        let h = curves.gains(H, &[CC], clients..)[0];
        report.add(H_SYNCH_COUNTER.on(machine), h);
        let add = |clients| curves.at(ADD, clients).mops;
        let grows = add(clients) / add(clients / 2);
        report.add(FETCH_AND_ADD.on(machine), grows);
    }
    Ok(curves)
}

/// Figure 7.10. Returns the rate of an optimized server relative to its rate with a counter, for
/// each seed.
fn stacks(x86: X86, counters: &Curves, report: &mut Report) -> Result<Vec<f64>> {
    let X86 { machine, clients, .. } = x86;
    let mut ways = x86.ways();
    let others: Vec<&str> = ways.iter().map(|(name, _)| *name).skip(3).chain([TREIBER]).collect();
    ways.push((TREIBER, Way::FetchAdd));
    let curves = Curves::run(ways, &x86.numbers(), |way, clients| {
        let setting = x86.setting(way.clone(), 1, clients)?;
        if matches!(way, Way::FetchAdd) {
            treiber(&setting)
        } else {
            setting.run_on(&Contained::Stack)
        }
    })?;
    report.curves((&format!("{machine}, stacks, Mops/s"), "clients"), &curves, |point| point.mops);
    x86.add_lead(&STACKS_LEAD, &curves, &others, report);
    let drops = SEEDS.map(|seed| x86.drop(seed)).into_iter().collect::<Result<Vec<f64>>>()?;
    report.add_spread(&BACKOFF_STACK.on(machine), drops.clone());
    let cc = curves.at(CC, clients).mops / counters.at(CC, clients).mops;
    report.add(CC_SYNCH_STACK.on(machine), cc);
    Ok(drops)
}

/// Figure 7.11.
fn queues(x86: X86, report: &mut Report) -> Result<()> {
    let X86 { machine, clients, .. } = x86;
    let queue = |ways: Ways, parts, object| {
        Curves::run(ways, &x86.numbers(), |way, clients| {
            x86.setting(way.clone(), parts, clients)?.run_on(object)
        })
    };
    let one = queue(x86.ways(), 1, &Contained::Queue)?;
    // An answer past the caches may overtake data that the other server must see.
    let ordered = x86.ways().into_iter().filter(|(name, _)| *name != STREAMING).collect();
    let two = queue(ordered, 2, &Contained::QueueOfTwo)?;
    let free = Curves::run([(LCRQ, ())], &x86.numbers(), |(), clients| {
        lcrq(&x86.setting(Way::FetchAdd, 1, clients)?)
    })?;
    for (what, curves) in [("one lock", &one), ("two locks", &two), ("no lock", &free)] {
        let what = format!("{machine}, {what}, Mops/s");
        report.curves((&what, "clients"), curves, |point| point.mops);
    }
    let gain = |name| two.at(name, clients).mops / one.at(name, clients).mops;
    report.add(TWO_OF_BASE.on(machine), gain(BASE));
    report.add(TWO_OF_BACKOFF.on(machine), gain(BACKOFF));
    report.add(TWO_OF_CC_SYNCH.on(machine), gain(CC));
    if machine == XEON {
        report.add(TWO_OF_H_SYNCH.on(machine), gain(H));
    }
    report.add(BACKOFF_OVER_BASE.on(machine), gain(BACKOFF) / gain(BASE));
    let optimized = one.at(STREAMING, clients).mops.min(one.at(BACKOFF, clients).mops);
    let combined = two.at(CC, clients).mops.max(free.at(LCRQ, clients).mops);
    if machine == XEON {
        let [clustered, long] =
            [TURN_CYCLES, LONG_TURN_CYCLES].map(|cycles| clustered(x86, cycles));
        let (clustered, long) = (clustered?, long?);
        let best = combined.max(two.at(H, clients).mops);
        report.add(QUEUES_LEAD_OF_XEON.on(machine), optimized / best);
        report.add(CLUSTERED_LEAD.on(machine), clustered.mops / optimized);
        report.add(CLUSTERED_FAIRNESS.on(machine), clustered.fairness());
        report.add(LONG_TURN_RATE.on(machine), long.mops);
        report.add(LONG_TURN_FAIRNESS.on(machine), long.fairness());
    } else {
        report.add(QUEUES_LEAD.on(machine), optimized / combined);
    }
    let fairness = one.at(BACKOFF, clients).fairness();
    report.add(BACKOFF_FAIRNESS.on(machine), fairness);
    Ok(())
}

/// Runs LCRQ+H with all threads.
fn clustered(x86: X86, turn_cycles: f64) -> Result<Point> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short time")]
    let wait_ns = (turn_cycles / XEON_GHZ) as u64;
    let clusters = Clusters { of: |thread| thread.0 as usize % 8, wait_ns };
    let setting = x86.setting(Way::FetchAdd, 1, x86.clients)?;
    lcrq_of_clusters(&Setting { measured_ns: TURNS * MEASURED_NS, ..setting }, clusters)
}

/// Section 6.2.5: a die compared with the TILE-Gx.
fn on_a_die(x86: X86, report: &mut Report) -> Result<()> {
    let shm = |slots| Way::Shm(slots);
    let ways = [
        (&DIE_MCS, Way::Mcs, Way::Mcs),
        (&DIE_CC_SYNCH, Way::CcSynch(MAX_OPS), Way::CcSynch(MAX_OPS)),
        (&DIE_SHM_SERVER, shm(x86.slots()), shm(TILE_SLOTS)),
    ];
    for (figure, here, there) in ways {
        let ratio = x86.die(here)?.run()?.mops / tile(there, TILES, 1).run()?.mops;
        report.add(figure.on(x86.machine), ratio);
    }
    // As in figure 6.6b, a thread serves for the whole run.
    let ways = [
        (&CC_SYNCH_STALLS, Way::CcSynch(u64::MAX), Way::CcSynch(u64::MAX)),
        (&SERVER_STALLS, shm(x86.slots()), shm(TILE_SLOTS)),
    ];
    for (figure, here, there) in ways {
        let ratio = x86.die(here)?.run()?.stalled() / tile(there, TILES, 1).run()?.stalled();
        report.add(figure.on(x86.machine), ratio);
    }
    let [here, there] = [x86.die(Way::FetchAdd)?, tile(Way::FetchAdd, TILES, 0)].map(|s| lcrq(&s));
    let ratio = here?.mops / there?.mops;
    report.add(DIE_LCRQ.on(x86.machine), ratio);
    let mops =
        |object| Ok::<_, anyhow::Error>(x86.die(Way::CcSynch(MAX_OPS))?.run_on(object)?.mops);
    let ratio = mops(&Contained::QueueOfTwo)? / mops(&Contained::Queue)?;
    report.add(DIE_TWO.on(x86.machine), ratio);
    Ok(())
}
