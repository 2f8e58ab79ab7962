//! A process's part in the task for which it was started.

use std::path::Path;

use anyhow::{Context as _, Result};
use consort_fabric::files;
use serde::Serialize;

use super::{
    launch::SessionInput,
    placement::PlacementSurvey,
    started::{Answer, Task, other_count},
};

/// Takes part in the task in the file at `path`, as a process that is or contains PEs. The process
/// of PE 0 returns the outcome as JSON.
///
/// # Errors
/// If the file has no task, or the job fails.
pub fn take_part(path: &Path) -> Result<Option<String>> {
    let text = files::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let task: Task<SessionInput, PlacementSurvey> = serde_json::from_slice(&text)
        .with_context(|| format!("{} has no session", path.display()))?;
    let whole = match &task {
        Task::Time(order) => order.whole(),
        Task::Survey(survey) => (survey.fabric, survey.pes),
    };
    if let Some(count) = other_count(whole) {
        return to_json(Some(Answer::<()>::Started(count)));
    }
    match task {
        Task::Time(order) => to_json(order.take_part()?.map(Answer::Outcome)),
        Task::Survey(survey) => to_json(survey.take_part()?.map(Answer::Outcome)),
    }
}

fn to_json(answer: Option<Answer<impl Serialize>>) -> Result<Option<String>> {
    Ok(answer.map(|answer| serde_json::to_string(&answer)).transpose()?)
}
