//! T12 on x86: counters, stacks and queues (sections 6.2.5 and 7.2.3, figures 7.9 to 7.11).
//!
//! Each runs under a server without optimizations, under two with them, and under combiners, beside
//! what takes no lock. Thread `n` is on socket `n mod 8` of the Xeon.

use anyhow::Result;
use consort_sync::objects::Clusters;

use super::{
    containers::{Contained, lcrq, lcrq_of_clusters, treiber},
    curves::{Curves, least, most},
    delegation::MAX_OPS,
    machines::{BOTH, OPTERON, TILE, TILES, X86, XEON, tile},
    report::Report,
    run::{MEASURED_NS, Point, Setting, Slots, Way},
};

const BASE: &str = "srv-base";
const BACKOFF: &str = "srv-B";
const STREAMING: &str = "srv-SS";
const CC: &str = "CC-SYNCH";
const H: &str = "H-SYNCH";
const ADD: &str = "fetch-and-add";
const TREIBER: &str = "Treiber";
const LCRQ: &str = "LCRQ";
const CLUSTERED: &str = "LCRQ+H";

/// The cycles for which LCRQ+H waits for the turn of a socket (section 7.2.3).
const TURN_CYCLES: f64 = 400_000.0;
/// The Xeon's cycles in a nanosecond.
const XEON_GHZ: f64 = 2.13;
/// So many times as long is LCRQ+H measured: each socket has several turns.
const TURNS: f64 = 50.0;

/// Ways with their names.
type Ways = Vec<(&'static str, Way)>;

impl X86 {
    /// The server without optimizations and with those of section 7.2.3, and combiners; H-SYNCH for
    /// the Xeon alone, as in the thesis.
    fn ways(self) -> Ways {
        let base = self.slots();
        let backoff = Slots { backoff: Some(self.backoff), ..base };
        // The thesis has backoff beside streaming stores where it gains by it.
        let beside = (self.machine == XEON).then_some(self.streaming_backoff);
        let streaming = Slots { streams: true, backoff: beside, ..base };
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
}

/// Adds counters, stacks and queues on both machines, and what differs from the TILE-Gx.
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
    report.add(OPTERON, "7.10 stack / counter, over the Xeon's", "x", drops[1] / drops[0]);
    Ok(())
}

/// Adds the slower of the optimized servers over the fastest of others, with many clients.
fn lead(x86: X86, figure: &str, curves: &Curves, others: &[&str], report: &mut Report) {
    for (what, clients) in [("all", x86.clients), ("half the", x86.clients / 2)] {
        let lead = |name| curves.gains(name, others, clients..=clients);
        let what = format!("{figure} optimized / best other, {what} clients");
        report.add(x86.machine, what, "x", least([lead(BACKOFF), lead(STREAMING)].concat()));
    }
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
    lead(x86, "7.9", &curves, &others, report);
    let cc = curves.gains(CC, &[BASE], clients..)[0];
    report.add(machine, "7.9 CC-SYNCH / srv-base", "x", cc);
    if machine == XEON {
        let h = curves.gains(H, &[CC], clients..)[0];
        report.add(machine, "7.9 H-SYNCH / CC-SYNCH", "x", h);
        let add = |clients| curves.at(ADD, clients).mops;
        let grows = add(clients) / add(clients / 2);
        report.add(machine, "7.9 fetch-and-add, 158 clients / 79", "x", grows);
    }
    Ok(curves)
}

/// Figure 7.10. Returns the operations of an optimized server, over those on a counter.
fn stacks(x86: X86, counters: &Curves, report: &mut Report) -> Result<f64> {
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
    lead(x86, "7.10", &curves, &others, report);
    let peak = |curves: &Curves| most(curves.of(BACKOFF).iter().map(|point| point.mops).collect());
    let drop = peak(&curves) / peak(counters);
    report.add(machine, "7.10 srv-B, stack / counter", "x", drop);
    let cc = curves.at(CC, clients).mops / counters.at(CC, clients).mops;
    report.add(machine, "7.10 CC-SYNCH, stack / counter", "x", cc);
    Ok(drop)
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
    // An answer past the caches may overtake what the other server has to see.
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
    for name in [BASE, BACKOFF, CC, H].into_iter().filter(|name| machine == XEON || *name != H) {
        report.add(machine, format!("7.11 {name}, two locks / one"), "x", gain(name));
    }
    report.add(machine, "7.11 the same, srv-B's / srv-base's", "x", gain(BACKOFF) / gain(BASE));
    let optimized = one.at(STREAMING, clients).mops.min(one.at(BACKOFF, clients).mops);
    let combined = two.at(CC, clients).mops.max(free.at(LCRQ, clients).mops);
    if machine == XEON {
        let clustered = clustered(x86)?;
        let best = combined.max(two.at(H, clients).mops);
        report.add(machine, "7.11 optimized / best other but LCRQ+H", "x", optimized / best);
        let what = format!("7.11 {CLUSTERED} / optimized");
        report.add(machine, what, "x", clustered.mops / optimized);
        report.add(machine, "7.11 LCRQ+H, most / least operations", "x", clustered.fairness());
    } else {
        report.add(machine, "7.11 optimized / best other", "x", optimized / combined);
    }
    let fairness = one.at(BACKOFF, clients).fairness();
    report.add(machine, "7.11 srv-B, most / least operations", "x", fairness);
    Ok(())
}

/// LCRQ+H with all threads.
fn clustered(x86: X86) -> Result<Point> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short time")]
    let wait_ns = (TURN_CYCLES / XEON_GHZ) as u64;
    let clusters = Clusters { of: |thread| thread.0 as usize % 8, wait_ns };
    let setting = x86.setting(Way::FetchAdd, 1, x86.clients)?;
    lcrq_of_clusters(&Setting { measured_ns: TURNS * MEASURED_NS, ..setting }, clusters)
}

/// Section 6.2.5: a die beside the TILE-Gx.
fn on_a_die(x86: X86, report: &mut Report) -> Result<()> {
    let shm = |slots| Way::Shm(slots);
    let ways = [
        ("MCS", Way::Mcs, Way::Mcs),
        (CC, Way::CcSynch(MAX_OPS), Way::CcSynch(MAX_OPS)),
        ("SHM-SERVER", shm(x86.slots()), shm(Slots::default())),
    ];
    for (name, here, there) in ways {
        let ratio = x86.die(here)?.run()?.mops / tile(there, TILES, 1).run()?.mops;
        report.add(x86.machine, format!("6.2.5 {name}, a die / {TILE}"), "x", ratio);
    }
    let [here, there] = [x86.die(Way::FetchAdd)?, tile(Way::FetchAdd, TILES, 0)].map(|s| lcrq(&s));
    let ratio = here?.mops / there?.mops;
    report.add(x86.machine, format!("6.2.5 {LCRQ}, a die / {TILE}"), "x", ratio);
    let mops =
        |object| Ok::<_, anyhow::Error>(x86.die(Way::CcSynch(MAX_OPS))?.run_on(object)?.mops);
    let ratio = mops(&Contained::QueueOfTwo)? / mops(&Contained::Queue)?;
    report.add(x86.machine, "6.2.5 CC-SYNCH on a die, two locks / one", "x", ratio);
    Ok(())
}
