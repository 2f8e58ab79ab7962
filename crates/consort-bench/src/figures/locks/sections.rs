//! T15: long critical sections on x86.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    machines::{BOTH, OPTERON, XEON},
    report::Report,
    run::Slots,
};

/// T15: the gain of streaming stores by the length of the section (section 7.2.2, figure 7.8).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[XEON, OPTERON]);
    let (mut rows, mut longest) = (Vec::new(), Vec::new());
    for x86 in BOTH {
        for increments in [1, 25, 50, 100, 150, 200] {
            let mops = |streams| {
                let slots = Slots { streams, ..Slots::default() };
                Ok::<_, anyhow::Error>(x86.serve(slots, x86.clients, increments)?.mops)
            };
            let (base, streaming) = (mops(false)?, mops(true)?);
            let name = format!("{}, {increments} increments", x86.machine);
            rows.push(vec![name, format!("{base:.2}"), format!("{streaming:.2}")]);
            if increments == 200 {
                let what = "200 increments, streaming / base";
                longest.push(report.add(x86.machine, what, "x", streaming / base));
            }
        }
    }
    report.table(&["Mops/s", "base", "streaming"], rows);
    report.finish(format!(
        "with 200 increments streaming stores still gain {:.2} x on the Xeon (paper: 1.84) and \
         {:.2} x on the Opteron (1.19)",
        longest[0], longest[1],
    ))
}
