//! T13: backoff and streaming stores on x86.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::{Curves, least, most},
    machines::{BOTH, OPTERON, X86, XEON},
    report::Report,
    run::{Point, Setting, Slots, Way},
};
use consort_bench::units::counted;

const BASE: &str = "base";
const BACKOFF: &str = "backoff";
const STREAMING: &str = "streaming";
const BOTH_OF_THEM: &str = "streaming, backoff";

/// T13: what the optimizations of SHM-SERVER gain, and what they cost (sections 7.2.1 and 7.2.2,
/// figures 7.5 to 7.7).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[XEON, OPTERON]);
    let mut verdict = Vec::new();
    for x86 in BOTH {
        let curves = counter(x86, &mut report)?;
        verdict.push(gains(x86, &curves, &mut report));
        latency(x86, &curves, &mut report);
        tuned(x86, &curves, &mut report)?;
        placement(x86, &mut report)?;
    }
    verdict.push("paper: 6 and 3.5 on the Xeon, 2 and 1.7 on the Opteron".to_owned());
    report.finish(verdict.join("; "))
}

/// A counter by clients.
fn counter(x86: X86, report: &mut Report) -> Result<Curves> {
    let (base, backoff) = (x86.slots(), Some(x86.backoff));
    let ways = [
        (BASE, base),
        ("base, shuffled", Slots { shuffled: true, ..base }),
        (BACKOFF, Slots { backoff, ..base }),
        ("backoff, shuffled", Slots { backoff, shuffled: true, ..base }),
        (STREAMING, Slots { streams: true, ..base }),
        (BOTH_OF_THEM, Slots { backoff: Some(x86.streaming_backoff), streams: true, ..base }),
    ];
    let clients = [1, 5, 10, 20, x86.clients / 2, x86.clients];
    let curves = Curves::run(ways, &clients, |&slots, clients| {
        x86.setting(Way::Shm(slots), 1, clients)?.run()
    })?;
    report.curves((&format!("{}, Mops/s", x86.machine), "clients"), &curves, |point| point.mops);
    report.curves((&format!("{}, ns", x86.machine), "clients"), &curves, Point::latency_ns);
    report.curves((&format!("{}, references", x86.machine), "clients"), &curves, |point| {
        point.remote()[0]
    });
    Ok(curves)
}

/// Figures 7.5 and 7.6. Returns them in words.
fn gains(x86: X86, curves: &Curves, report: &mut Report) -> String {
    let X86 { machine, clients, .. } = x86;
    for (name, points) in curves.rows() {
        report.add(machine, format!("7.5 {name}"), "Mops/s", points[points.len() - 1].mops);
    }
    let mut ratio = |figure, name, other| {
        let ratio = curves.gains(name, &[other], clients..)[0];
        report.add(machine, format!("{figure} {name} / {other}"), "x", ratio)
    };
    let backoff = ratio("7.5", BACKOFF, BASE);
    ratio("7.5", "base, shuffled", BASE);
    let streaming = ratio("7.6", STREAMING, BASE);
    let both = ratio("7.6", BOTH_OF_THEM, STREAMING);
    let mops = |name| curves.at(name, clients).mops;
    let lost = (mops(BACKOFF) - mops("backoff, shuffled")) / (mops(BACKOFF) - mops(BASE));
    let lost = report.add(machine, "7.5 gain of backoff lost by shuffling", "%", 100.0 * lost);
    format!(
        "{}: backoff {backoff:.1} x, streaming stores {streaming:.1} x, both {both:.2} x \
         streaming; shuffled slots lose {lost:.0} % of the backoff's gain",
        if machine == XEON { "Xeon" } else { "Opteron" },
    )
}

/// Figure 7.7.
fn latency(x86: X86, curves: &Curves, report: &mut Report) {
    let alone = |name| curves.delays(name, &[BASE], 1..=1)[0];
    let all = [BACKOFF, STREAMING, BOTH_OF_THEM].map(alone);
    report.add(x86.machine, "7.7 fastest optimized / base, 1 client", "x", least(all.into()));
    let [backoff, others @ ..] = all;
    report.add(x86.machine, format!("7.7 B{} / base, 1 client", x86.backoff), "x", backoff);
    report.add(x86.machine, "7.7 slowest streaming / base, 1 client", "x", most(others.into()));
}

/// A server that finds the backoff itself, which the thesis has not (F3).
fn tuned(x86: X86, fixed: &Curves, report: &mut Report) -> Result<()> {
    const TUNED: &str = "backoff, tuned";
    const STREAMING_TUNED: &str = "streaming, tuned";
    let tuned = Slots { tunes: true, ..x86.slots() };
    let ways = [(TUNED, tuned), (STREAMING_TUNED, Slots { streams: true, ..tuned })];
    let counts = [1, x86.clients / 2, x86.clients];
    let curves = Curves::run(ways, &counts, |&slots, clients| {
        x86.setting(Way::Shm(slots), 1, clients)?.run()
    })?;
    report.curves((&format!("{}, Mops/s", x86.machine), "clients"), &curves, |point| point.mops);
    for (name, others) in [(TUNED, [BASE, BACKOFF]), (STREAMING_TUNED, [STREAMING, BOTH_OF_THEM])] {
        for clients in counts {
            let best = most(others.map(|other| fixed.at(other, clients).mops).into());
            let ratio = curves.at(name, clients).mops / best;
            let clients = counted(u64::from(clients), "client");
            report.add(x86.machine, format!("{name} / best fixed, {clients}"), "x", ratio);
        }
    }
    Ok(())
}

/// Section 7.2.1: where slots and clients are, and how sections are called.
fn placement(x86: X86, report: &mut Report) -> Result<()> {
    let slots = Slots { backoff: Some(x86.backoff), ..x86.slots() };
    let setting = |slots| x86.setting(Way::Shm(slots), 1, x86.clients);
    let as_placed = setting(slots)?.run()?.mops;
    let [all, second] = [false, true].map(|every_second| setting(Slots { every_second, ..slots }));
    let ratio = second?.run()?.mops / all?.run()?.mops;
    report.add(x86.machine, "7.2.1 every second line / every line", "x", ratio);
    for (name, slots) in [(BASE, x86.slots()), (BACKOFF, slots)] {
        let by_number = Setting { by_pointer: false, ..setting(slots)? }.run()?.mops;
        let ratio = by_number / setting(slots)?.run()?.mops;
        report.add(x86.machine, format!("7.2.1 {name}, by number / by pointer"), "x", ratio);
    }
    if x86.machine == XEON {
        let mut beside = setting(slots)?;
        beside.placement.push(1);
        let ratio = beside.run()?.mops / as_placed;
        report.add(x86.machine, "7.2.1 client beside the server / none", "x", ratio);
    }
    Ok(())
}
