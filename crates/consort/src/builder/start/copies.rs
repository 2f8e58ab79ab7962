//! Detects that a launcher has started several copies of a program, and that each runs a separate
//! job instead of one common job.
//!
//! `consort run` warns at the end if no process was one of its PEs. Under other launchers, the
//! first process warns when it starts PEs, unless it was one of the launcher's PEs before.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use consort_fabric::environment::{launched, variable};
use consort_native::PeProcess;

use crate::warn::warn;

/// Whether this process has been one of the PEs that an MPI has started.
static IS_ONE_OF_ALL: AtomicBool = AtomicBool::new(false);

/// Records that this process is one of the PEs that an MPI has started.
pub(super) fn note_part_of_job() {
    // Relaxed: it publishes no other data.
    IS_ONE_OF_ALL.store(true, Relaxed);
}

/// Warns, once, that other processes run copies of the job that this process starts.
pub(super) fn warn_once() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    // No thread waits for another one here, because a child may be forked in the meantime.
    if IS_DONE.swap(true, Relaxed) {
        return;
    }
    PeProcess::is_alone();
    if IS_ONE_OF_ALL.load(Relaxed) || variable("CONSORT_LAUNCH").is_some() {
        return;
    }
    if let Some(text) = text(|name| variable(name)?.into_string().ok()) {
        warn(&text);
    }
}

/// Returns the warning of the first of several processes.
fn text(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (count, _) = launched(variable).filter(|&(count, rank)| count > 1 && rank == 0)?;
    Some(format!(
        "a launcher has started {count} copies of this program, and each runs a separate job of \
         threads: use `Job::from_env` so that the processes are the PEs of one job, or start one \
         process"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_several_processes_warns() {
        let said = |set: &[(&str, &str)]| {
            text(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let [size, rank] = ["PMI_SIZE", "PMI_RANK"];
        let text = said(&[(size, "3"), (rank, "0")]).expect("a warning");
        assert!(text.contains("3 copies") && text.contains("`Job::from_env`"), "{text}");
        assert_eq!(said(&[(size, "3"), (rank, "1")]), None);
        assert_eq!(said(&[(size, "1"), (rank, "0")]), None);
        assert_eq!(said(&[(size, "3")]), None);
        assert_eq!(said(&[]), None);
    }
}
