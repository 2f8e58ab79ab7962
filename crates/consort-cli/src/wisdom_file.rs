//! The wisdom file: its path, the backup of the old file, remedies for an unusable file, and its
//! entries as JSON.

use consort_console::require;
use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use consort::{
    launch::{Fabric, MachineShape},
    tune::{Arrival, Query},
};
use consort_bench::query_json::QueryJson;
pub(crate) use consort_bench::wisdom::advised;
use consort_fabric::files;
use consort_tuner::{Entry, default_path};
use serde::Serialize;

/// Returns the path of the named wisdom file, or of the one that a launch of such PEs uses.
///
/// # Errors
/// When there is no home directory, or the placement of PEs on machines is unknown.
pub(crate) fn path(named: Option<&PathBuf>, arrival: Arrival, fabric: Fabric) -> Result<PathBuf> {
    require!(
        !matches!(fabric, Fabric::Mixed(MachineShape { processes: None, .. })),
        "--fabric {fabric}: say how many processes a machine has, as in mixed:2x1 for 2 with 1 PE \
         each; `consort topo --fabric {fabric}` shows how many"
    );
    let default = || Ok(fabric.path_of_wisdom(default_path(arrival)?));
    named.cloned().map_or_else(default, Ok)
}

/// Copies the file at `path` to the same name with `.old` appended, and returns the path of the
/// copy.
///
/// # Errors
/// When it cannot be copied.
pub(crate) fn set_aside(path: &Path) -> Result<Option<PathBuf>> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    let old = match files::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    files::replace(&aside, &old, 0)
        .with_context(|| format!("cannot keep the old wisdom as {}", aside.display()))?;
    Ok(Some(aside))
}

/// An entry of wisdom as JSON; a key that does not apply is null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    #[serde(flatten, with = "QueryJson")]
    query: Query,
    choice: String,
    median_ns: f64,
    ci95_ns: Option<(f64, f64)>,
    runner_up: Option<String>,
    runner_up_ns: Option<f64>,
    margin: Option<f64>,
    confidence: String,
    rigour: String,
    c2c_class: Option<String>,
    undisturbed: f64,
    busy: Option<String>,
}

impl From<&Entry> for Record {
    fn from(entry: &Entry) -> Self {
        let runner_up = entry.runner_up.as_ref();
        Self {
            query: entry.query,
            choice: entry.choice.to_string(),
            median_ns: entry.median_ns,
            ci95_ns: entry.ci95_ns,
            runner_up: runner_up.map(|second| second.candidate.to_string()),
            runner_up_ns: runner_up.map(|second| second.median_ns),
            margin: entry.margin(),
            confidence: entry.confidence.to_string(),
            rigour: entry.rigour.to_string(),
            c2c_class: entry.class.map(|class| class.to_string()),
            undisturbed: entry.undisturbed,
            busy: entry.busy.clone(),
        }
    }
}
