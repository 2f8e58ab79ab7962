//! T13: backoff and streaming stores on x86.

use anyhow::Result;
use consort_sync::delegation::Backoff;

use super::{
    super::experiment::{Experiment, Outcome},
    machines::{BOTH, OPTERON, X86, XEON},
    report::Report,
    run::{Slots, Way},
};

/// The figures of a machine.
struct Gains {
    backoff: f64,
    streaming: f64,
    both: f64,
    shuffled: f64,
}

/// T13: what the optimizations of SHM-SERVER gain (section 7.2.2, figures 7.5 and 7.6), beside
/// combining and a bare addition (figure 7.9).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[XEON, OPTERON]);
    let mut verdict = Vec::new();
    for x86 in BOTH {
        let Gains { backoff, streaming, both, shuffled } = gains(x86, &mut report)?;
        verdict.push(format!(
            "{}: backoff {backoff:.1} x, streaming stores {streaming:.1} x, both {both:.2} x \
             streaming; shuffled slots lose {shuffled:.0} % of the backoff's gain",
            if x86.machine == XEON { "Xeon" } else { "Opteron" },
        ));
    }
    verdict.push("paper: 6 and 3.5 on the Xeon, 2 and 1.7 on the Opteron".to_owned());
    report.finish(verdict.join("; "))
}

fn gains(x86: X86, report: &mut Report) -> Result<Gains> {
    let X86 { machine, clients, backoff, streaming_backoff, .. } = x86;
    let (backoff, tuned) = (Some(backoff), Some(Backoff::Tuned));
    let ways = [
        ("base", Slots::default()),
        ("base, shuffled", Slots { shuffled: true, ..Slots::default() }),
        ("backoff", Slots { backoff, ..Slots::default() }),
        ("backoff, shuffled", Slots { backoff, shuffled: true, ..Slots::default() }),
        ("streaming", Slots { streams: true, ..Slots::default() }),
        (
            "streaming, backoff",
            Slots { backoff: Some(streaming_backoff), streams: true, ..Slots::default() },
        ),
        ("tuned backoff", Slots { backoff: tuned, ..Slots::default() }),
        ("streaming, tuned", Slots { backoff: tuned, streams: true, ..Slots::default() }),
    ];
    let mut rows = Vec::new();
    let mut mops = Vec::new();
    for (name, slots) in ways {
        let mut row = vec![format!("{machine}, {name}")];
        for count in [1, 5, 10, 20, clients / 2, clients] {
            // A search takes long to simulate.
            if slots.backoff == tuned && ![1, clients / 2, clients].contains(&count) {
                row.push(String::new());
                continue;
            }
            let point = x86.serve(slots, count, 1)?;
            row.push(format!("{:.1}", point.mops));
            if count == clients {
                row.push(format!("{:.2}", point.remote()[0]));
                mops.push(report.add(machine, format!("counter, {name}"), "Mops/s", point.mops));
            }
        }
        rows.push(row);
    }
    let half = format!("{}", clients / 2);
    let all = format!("{clients}");
    report.table(
        &["Mops/s by clients", "1", "5", "10", "20", &half, &all, "remote references"],
        rows,
    );
    let threads = clients + 1;
    let cc = x86.run_all(Way::CcSynch(200), threads)?.mops;
    report.add(machine, "counter, CC-SYNCH", "Mops/s", cc);
    if machine == XEON {
        let h = x86.run_all(Way::HSynch(200), threads)?.mops;
        report.add(machine, "counter, H-SYNCH", "Mops/s", h);
    }
    let add = x86.run_all(Way::FetchAdd, threads)?.mops;
    report.add(machine, "counter, fetch-and-add", "Mops/s", add);
    let backoff = report.add(machine, "counter, backoff / base", "x", mops[2] / mops[0]);
    let streaming = report.add(machine, "counter, streaming / base", "x", mops[4] / mops[0]);
    let both =
        report.add(machine, "counter, streaming and backoff / streaming", "x", mops[5] / mops[4]);
    let best = mops[2].max(mops[0]);
    report.add(machine, "counter, tuned backoff / best fixed", "x", mops[6] / best);
    let lost = 100.0 * (mops[2] - mops[3]) / (mops[2] - mops[0]);
    let shuffled = report.add(machine, "counter, gain of backoff lost by shuffling", "%", lost);
    Ok(Gains { backoff, streaming, both, shuffled })
}
