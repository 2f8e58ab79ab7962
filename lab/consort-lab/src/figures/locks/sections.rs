//! T15: long critical sections on x86.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::Curves,
    machines::{BOTH, OPTERON, XEON},
    report::Report,
    run::{Setting, Slots, Way},
};

figures! { pub FIGURES of "T15", "section 7.2.2, figure 7.8": "x":
    LONG("7.8 200 increments, streaming / base", XEON == 1.84, OPTERON == 1.19)
}

/// T15: the gain of streaming stores over the length of the section (section 7.2.2, figure 7.8).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let mut longest = Vec::new();
    for x86 in BOTH {
        let ways = [("base", false), ("streaming", true)];
        let curves = Curves::run(ways, &[1, 25, 50, 100, 150, 200], |&streams, increments| {
            let way = Way::Shm(Slots { streams, ..x86.slots() });
            Setting { increments: increments as usize, ..x86.setting(way, 1, x86.clients)? }.run()
        })?;
        report.curves((&format!("{}, Mops/s", x86.machine), "increments"), &curves, |point| {
            point.mops
        });
        let ratio = curves.gains("streaming", &["base"], 200..)[0];
        longest.push(report.add(LONG.on(x86.machine), ratio));
    }
    Ok(report.finish(format!(
        "with 200 increments streaming stores still gain {:.2} x on the Xeon (paper: 1.84) and \
         {:.2} x on the Opteron (1.19)",
        longest[0], longest[1],
    )))
}
