//! What to start, and what has come of it.

use std::{ffi::OsString, fmt, time::Duration};

use consort_fabric::Rank;
use consort_native::Binding;

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The number of processes.
    pub pes: u32,
    /// The cores that they may use.
    pub cores: u32,
    /// Where they run.
    pub binding: Binding,
    /// Whether each line that they write begins with the rank.
    pub tags: bool,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// How long the others may go on when one has failed.
    pub grace: Duration,
    /// The program, and its arguments.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
}

/// What has come of a job.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status: that of the first process that failed, or 128 and the number of the signal
    /// that has killed it.
    pub status: u8,
    /// What has ended the job early.
    pub trouble: Option<Trouble>,
    /// The PEs that were killed because of that.
    pub killed: Vec<Rank>,
}

/// What has ended a job early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It has failed, for this reason.
    Failed(String),
    /// The job has taken too long.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The PEs that had not ended.
        running: Vec<Rank>,
    },
    /// Nobody reads what the processes write.
    NoReader,
}

/// At most so many ranks are listed.
const LISTED: usize = 8;

/// Some ranks, as a text: `PE 1`, `PEs 1, 2 and 5`.
fn list(ranks: &[Rank]) -> String {
    let named: Vec<String> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    match named.split_last() {
        None => "no PE".to_owned(),
        Some((only, [])) => format!("PE {only}"),
        _ if ranks.len() > LISTED => {
            format!("PEs {} and {} others", named.join(", "), ranks.len() - LISTED)
        }
        Some((last, others)) => format!("PEs {} and {last}", others.join(", ")),
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trouble {
            Some(Trouble::Failed(reason)) => write!(f, "{reason}")?,
            Some(Trouble::TimedOut { limit, running }) => {
                write!(f, "the job took longer than {limit:?}: {} had not ended", list(running))?;
            }
            Some(Trouble::NoReader) => write!(f, "nobody reads what the job writes")?,
            None => write!(f, "all PEs ended with status 0")?,
        }
        if matches!(self.trouble, Some(Trouble::Failed(_))) && !self.killed.is_empty() {
            write!(f, "; {} did not end by itself and was killed", list(&self.killed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_the_pe_and_how_it_ended() {
        let reason = "PE 2 failed: it was killed by signal 9 (SIGKILL)";
        let trouble = Some(Trouble::Failed(reason.to_owned()));
        let mut outcome = Outcome { status: 137, trouble, killed: Vec::new() };
        assert_eq!(outcome.to_string(), reason);
        outcome.killed = vec![Rank(0)];
        assert!(outcome.to_string().ends_with("; PE 0 did not end by itself and was killed"));
        let running = (0..20).map(Rank).collect();
        let trouble = Some(Trouble::TimedOut { limit: Duration::from_secs(2), running });
        let text = Outcome { status: 124, trouble, killed: Vec::new() }.to_string();
        let all = "PEs 0, 1, 2, 3, 4, 5, 6, 7 and 12 others had not ended";
        assert_eq!(text, format!("the job took longer than 2s: {all}"));
    }
}
