//! T13: backoff and streaming stores on x86.

use anyhow::Result;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        figure::Figure,
    },
    curves::{Curves, least, most},
    machines::{BOTH, OPTERON, X86, XEON},
    report::Report,
    run::{Point, SEEDS, Setting, Slots, Way},
};
use consort_bench::units::counted;

figures! { pub FIGURES of "T13", "sections 7.2.1 and 7.2.2":
    // Section 7.3: "about 20 Mops/sec on both".
    "Mops/s":
    STREAMING_RATE("7.5 streaming", OPTERON == 20.0)
    BOTH_RATE("7.5 streaming, backoff", XEON == 20.0)
    "x":
    BACKOFF_GAIN("7.5 backoff / base", XEON == 6.0, OPTERON == 2.0)
    SHUFFLED_GAIN("7.5 base, shuffled / base", XEON == 1.0, OPTERON == 1.0)
    STREAMING_GAIN("7.6 streaming / base", XEON == 3.5, OPTERON == 1.7)
    BOTH_GAIN("7.6 streaming, backoff / streaming", XEON >= 1.0, OPTERON == 1.0)
    FASTEST("7.7 fastest optimized / base, 1 client", XEON >= 1.0, OPTERON >= 1.0)
    BACKOFF_OF_5000("7.7 B5000 / base, 1 client", XEON >= 1.6)
    BACKOFF_OF_1500("7.7 B1500 / base, 1 client", OPTERON <= 1.6)
    // "srv-B3000-SS on the Xeon" and "srv-SS on the Opteron".
    STREAMING_OF_3000("7.7 B3000-SS / base, 1 client", XEON <= 1.6)
    STREAMING_ALONE("7.7 SS / base, 1 client", OPTERON <= 1.6)
    SECOND_LINE("7.2.1 every second line / every line", XEON >= 1.0, OPTERON <= 1.0)
    BASE_BY_NUMBER("7.2.1 base, by number / by pointer", XEON == 1.0, OPTERON == 1.0)
    BACKOFF_BY_NUMBER("7.2.1 backoff, by number / by pointer", XEON == 1.0, OPTERON == 1.0)
    NEXT_TO_SERVER("7.2.1 client next to the server / none", XEON <= 1.0)
}

const BASE: &str = "base";
const BACKOFF: &str = "backoff";
const STREAMING: &str = "streaming";
const BOTH_OF_THEM: &str = "streaming, backoff";

/// T13: the gains and costs of the optimizations of SHM-SERVER (sections 7.2.1 and 7.2.2, figures
/// 7.5 to 7.7).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let mut verdict = Vec::new();
    for x86 in BOTH {
        let curves = counter(x86, &mut report)?;
        verdict.push(gains(x86, &curves, &mut report));
        latency(x86, &curves, &mut report);
        tuned(x86, &curves, &mut report)?;
        placement(x86, &mut report)?;
    }
    verdict.push("paper: 6 and 3.5 on the Xeon, 2 and 1.7 on the Opteron".to_owned());
    Ok(report.finish(verdict.join("; ")))
}

/// Returns the curves of a counter over the number of clients.
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

/// Figures 7.5 and 7.6. Returns them as text.
fn gains(x86: X86, curves: &Curves, report: &mut Report) -> String {
    let X86 { machine, clients, .. } = x86;
    for (name, points) in curves.rows() {
        let mops = points[points.len() - 1].mops;
        match name {
            STREAMING => _ = report.add(STREAMING_RATE.on(machine), mops),
            BOTH_OF_THEM => _ = report.add(BOTH_RATE.on(machine), mops),
            other => report.add_other(machine, format!("7.5 {other}"), "Mops/s", mops),
        }
    }
    let mut ratio = |figure: &'static Figure, name, other| {
        let ratio = curves.gains(name, &[other], clients..)[0];
        report.add(figure.on(machine), ratio)
    };
    let backoff = ratio(&BACKOFF_GAIN, BACKOFF, BASE);
    ratio(&SHUFFLED_GAIN, "base, shuffled", BASE);
    let streaming = ratio(&STREAMING_GAIN, STREAMING, BASE);
    let both = ratio(&BOTH_GAIN, BOTH_OF_THEM, STREAMING);
    let mops = |name| curves.at(name, clients).mops;
    let lost = (mops(BACKOFF) - mops("backoff, shuffled")) / (mops(BACKOFF) - mops(BASE));
    let lost = 100.0 * lost;
    report.add_other(machine, "7.5 gain of backoff lost by shuffling", "%", lost);
    format!(
        "{}: backoff {backoff:.1} x, streaming stores {streaming:.1} x, both {both:.2} x \
         streaming; shuffled slots lose {lost:.0} % of the backoff's gain",
        if machine == XEON { "Xeon" } else { "Opteron" },
    )
}

/// Figure 7.7: the parameters that section 7.2.2 chooses. With streaming stores they include
/// backoff only on the Xeon.
fn latency(x86: X86, curves: &Curves, report: &mut Report) {
    let chosen = if x86.machine == XEON {
        [(&BACKOFF_OF_5000, BACKOFF), (&STREAMING_OF_3000, BOTH_OF_THEM)]
    } else {
        [(&BACKOFF_OF_1500, BACKOFF), (&STREAMING_ALONE, STREAMING)]
    };
    let ratios = chosen.map(|(figure, name)| (figure, curves.delays(name, &[BASE], 1..=1)[0]));
    report.add(FASTEST.on(x86.machine), least(ratios.map(|(_, ratio)| ratio).into()));
    for (figure, ratio) in ratios {
        report.add(figure.on(x86.machine), ratio);
    }
}

/// Adds a server that finds the backoff itself, which the thesis does not have (F3).
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
            report.add_other(x86.machine, format!("{name} / best fixed, {clients}"), "x", ratio);
        }
    }
    Ok(())
}

/// Section 7.2.1: the placement of slots and clients, and the way sections are called.
fn placement(x86: X86, report: &mut Report) -> Result<()> {
    let slots = Slots { backoff: Some(x86.backoff), ..x86.slots() };
    let setting = |slots| x86.setting(Way::Shm(slots), 1, x86.clients);
    let as_placed = setting(slots)?.run()?.mops;
    let [all, second] = [false, true].map(|every_second| setting(Slots { every_second, ..slots }));
    let ratio = second?.run()?.mops / all?.run()?.mops;
    report.add(SECOND_LINE.on(x86.machine), ratio);
    for (figure, slots) in [(&BASE_BY_NUMBER, x86.slots()), (&BACKOFF_BY_NUMBER, slots)] {
        let ratio = |seed| -> Result<f64> {
            let by_pointer = Setting { seed, ..setting(slots)? };
            let by_number = Setting { by_pointer: false, ..by_pointer.clone() };
            Ok(by_number.run()?.mops / by_pointer.run()?.mops)
        };
        let ratios = SEEDS.map(ratio).into_iter().collect::<Result<_>>()?;
        report.add_spread(&figure.on(x86.machine), ratios);
    }
    if x86.machine == XEON {
        let mut next_to_server = setting(slots)?;
        next_to_server.placement.push(1);
        let ratio = next_to_server.run()?.mops / as_placed;
        report.add(NEXT_TO_SERVER.on(x86.machine), ratio);
    }
    Ok(())
}
