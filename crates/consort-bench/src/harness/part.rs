//! A process's part in what it is started for.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::{Context as _, Result};

use super::{launch::Order, places::Survey, started::Task};

/// Takes part in the task in the file at `path`, as a process that is a PE or has some. The one of
/// PE 0 returns the outcome as JSON.
///
/// # Errors
/// When the file has no task, or the job fails.
pub fn take_part(path: &Path) -> Result<Option<String>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let task: Task<Order, Survey> = serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} has no session", path.display()))?;
    let said = |outcome: serde_json::Result<String>| outcome.map_err(Into::into);
    match task {
        Task::Time(order) => {
            order.take_part()?.map(|timed| said(serde_json::to_string(&timed))).transpose()
        }
        Task::Survey(survey) => {
            survey.take_part()?.map(|found| said(serde_json::to_string(&found))).transpose()
        }
    }
}
