//! The description of a launch, and its outcome.

use std::{ffi::OsString, fmt, time::Duration};

use consort_fabric::Rank;
use consort_native::{Binding, ProcessEnd, list_of_ranks};

/// The description of a launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The number of processes.
    pub pes: u32,
    /// The number of processors that they may use.
    pub processors: usize,
    /// How the processes are bound to processors.
    pub binding: Binding,
    /// Environment variables of the processes, in addition to those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether each line of output begins with the rank.
    pub tags: bool,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// How long the others may continue after one has failed.
    pub grace: Duration,
    /// The program.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
}

/// The outcome of a job.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status: the one with which a PE has ended the job; otherwise that of the first
    /// process that failed, or 128 plus the number of the signal that killed it or ended the job.
    pub status: u8,
    /// The reason why the job ended early.
    pub reason: Option<EndReason>,
    /// The PEs that were killed for that reason.
    pub killed: Vec<Rank>,
}

/// The reason why a job ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It failed, for this reason.
    Failed(String),
    /// A PE ended it with status 0; nothing is reported.
    Ended,
    /// A signal to the launcher ended it.
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
    /// The job took too long.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The PEs that had not ended.
        running: Vec<Rank>,
    },
    /// The output of the processes can no longer be written, for this reason.
    NotWritten(String),
    /// The process that started the launcher was killed.
    Abandoned,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(EndReason::Failed(reason) | EndReason::NotWritten(reason)) => {
                write!(f, "{reason}")?
            }
            Some(EndReason::Interrupted { signal }) => {
                write!(f, "the job was interrupted by signal {signal}")?;
                let number = u8::try_from(*signal).ok();
                number
                    .and_then(ProcessEnd::signal_name)
                    .map_or(Ok(()), |name| write!(f, " ({name})"))?;
            }
            Some(EndReason::TimedOut { limit, running }) => {
                match limit.is_zero() {
                    true => f.write_str("the job took longer than 0s: ")?,
                    false => write!(f, "the job took longer than {limit:?}: ")?,
                }
                match running[..] {
                    [] => f.write_str("its output was not read to the end")?,
                    _ => write!(f, "{} had not ended", list_of_ranks(running))?,
                }
            }
            Some(EndReason::Abandoned) => f.write_str("consort run was killed; so were all PEs")?,
            Some(EndReason::Ended) | None => f.write_str("all PEs ended with status 0")?,
        }
        let tells =
            matches!(self.reason, Some(EndReason::Failed(_) | EndReason::Interrupted { .. }));
        match self.killed[..] {
            [] => Ok(()),
            _ if !tells => Ok(()),
            [_] => {
                write!(f, "; {} did not end by itself and was killed", list_of_ranks(&self.killed))
            }
            _ => write!(
                f,
                "; {} did not end by themselves and were killed",
                list_of_ranks(&self.killed)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_the_pe_and_how_it_ended() {
        let text = "PE 2 failed: it was killed by signal 9 (SIGKILL)";
        let reason = Some(EndReason::Failed(text.to_owned()));
        let mut outcome = Outcome { status: 137, reason, killed: Vec::new() };
        assert_eq!(outcome.to_string(), text);
        outcome.killed = vec![Rank(0)];
        assert!(outcome.to_string().ends_with("; PE 0 did not end by itself and was killed"));
        outcome.killed.push(Rank(3));
        let all = "; PEs 0 and 3 did not end by themselves and were killed";
        assert_eq!(outcome.to_string(), format!("{text}{all}"));
        outcome.reason = Some(EndReason::Interrupted { signal: 2 });
        let text = format!("the job was interrupted by signal 2 (SIGINT){all}");
        assert_eq!(outcome.to_string(), text);
        let running = (0..20).map(Rank).collect();
        let reason = Some(EndReason::TimedOut { limit: Duration::from_secs(2), running });
        let text = Outcome { status: 124, reason, killed: Vec::new() }.to_string();
        let all = "PEs 0, 1, 2, 3, 4, 5, 6, 7 and 12 others had not ended";
        assert_eq!(text, format!("the job took longer than 2s: {all}"));
        let reason = Some(EndReason::TimedOut { limit: Duration::ZERO, running: Vec::new() });
        let text = Outcome { status: 124, reason, killed: Vec::new() }.to_string();
        assert_eq!(text, "the job took longer than 0s: its output was not read to the end");
    }
}
