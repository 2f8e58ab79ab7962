//! The results of a survey of this machine.

use consort_bench::limits::survey::SurveyFigures;
use serde::Serialize;

use consort_console::this_machine::MachineInfo;

/// The output of `--json`.
#[derive(Serialize)]
pub(super) struct TopoOutput {
    #[serde(flatten)]
    pub(super) machine: MachineInfo,
    /// The measurements; null if there are none.
    #[serde(flatten)]
    pub(super) measured: Option<SurveyFigures>,
    /// The reason why nothing was measured, unless the budget was 0.
    pub(super) not_measured: Option<String>,
}
