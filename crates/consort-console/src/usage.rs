//! Invalid command-line usage that the commands detect themselves. It ends them like an error of
//! the parser.

use std::{error::Error, fmt, process::ExitCode};

use crate::signals::{INTERRUPTED, Interrupted};

/// The exit status of invalid usage, which is also the parser's.
const INVALID_USAGE: u8 = 2;

/// Invalid usage, with the correction.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Ends a function with an error of invalid usage.
#[macro_export]
macro_rules! refuse {
    ($($text:tt)+) => {
        return Err($crate::usage::invalid_argument(format!($($text)+)))
    };
}

/// Ends a function with an error of invalid usage unless a condition holds.
#[macro_export]
macro_rules! require {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            $crate::refuse!($($text)+)
        }
    };
}

/// Converts an error to one of invalid usage: a requested item does not exist, or is invalid.
pub fn invalid_argument(error: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(error.to_string()))
}

/// Returns the exit status of an error.
pub fn status(error: &anyhow::Error) -> ExitCode {
    if Interrupted::has_caused(error) {
        return ExitCode::from(INTERRUPTED);
    }
    let is_usage = error.chain().any(<dyn Error>::is::<Usage>);
    if is_usage { ExitCode::from(INVALID_USAGE) } else { ExitCode::FAILURE }
}
