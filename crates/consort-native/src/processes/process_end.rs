//! How a process has ended.

use std::fmt;

/// The way in which a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The process exited with this status.
    Exited(u8),
    /// A signal with this number killed the process.
    Killed(u8),
    /// The process has ended, and only its parent knows how.
    Gone,
    /// The process runs, but could not begin the job.
    Withdrawn,
}

const EXITED: u32 = 1 << 8;
const KILLED: u32 = 2 << 8;
const GONE: u32 = 3 << 8;
const WITHDRAWN: u32 = 4 << 8;

impl ProcessEnd {
    /// Encodes the end as a word that is not 0.
    pub(super) fn word(self) -> u32 {
        match self {
            Self::Exited(status) => EXITED | u32::from(status),
            Self::Killed(signal) => KILLED | u32::from(signal),
            Self::Gone => GONE,
            Self::Withdrawn => WITHDRAWN,
        }
    }

    /// Decodes a word. `None` if the word does not encode an end.
    pub(super) fn of_word(word: u32) -> Option<Self> {
        let [low, kind, ..] = word.to_le_bytes();
        match u32::from(kind) << 8 {
            EXITED => Some(Self::Exited(low)),
            KILLED => Some(Self::Killed(low)),
            GONE => Some(Self::Gone),
            WITHDRAWN => Some(Self::Withdrawn),
            _ => None,
        }
    }
}

impl ProcessEnd {
    /// Returns the name of a signal, if it is one that ends programs.
    #[must_use]
    pub fn signal_name(signal: u8) -> Option<&'static str> {
        SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
    }
}

const SIGNALS: [(u8, &str); 16] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (31, "SIGSYS"),
];

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Gone => f.write_str("ended"),
            Self::Withdrawn => f.write_str("could not begin the job: its own error says why"),
            Self::Killed(signal) => {
                write!(f, "was killed by signal {signal}")?;
                Self::signal_name(*signal).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_converts_to_word_and_text() {
        for (end, text) in [
            (ProcessEnd::Exited(0), "exited with status 0"),
            (ProcessEnd::Exited(255), "exited with status 255"),
            (ProcessEnd::Killed(9), "was killed by signal 9 (SIGKILL)"),
            (ProcessEnd::Killed(64), "was killed by signal 64"),
            (ProcessEnd::Gone, "ended"),
            (ProcessEnd::Withdrawn, "could not begin the job: its own error says why"),
        ] {
            assert_eq!(ProcessEnd::of_word(end.word()), Some(end));
            assert_eq!(end.to_string(), text);
        }
        assert_eq!(ProcessEnd::of_word(0), None);
        assert_eq!(ProcessEnd::of_word(u32::MAX), None);
    }
}
