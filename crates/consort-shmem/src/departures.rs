//! The error of a routine that waits for a PE that has left: it has called `shmem_finalize`, or its
//! process exits.
//!
//! A PE that leaves makes one more call, in which all PEs must take part. If the others make
//! another call, the runtime reports two calls that do not match, although the program has made
//! only one of them. The leaving PE's call has the name of its routine, so the error can explain
//! what has happened.

use consort::Error;
use consort_native::Failure;

/// The routine with which a PE leaves the job, and the name of its call.
pub(crate) const FINALIZE: &str = "shmem_finalize";

/// Explains an error of `routine` if one PE has called `shmem_finalize` or exited while another one
/// waits for it in this or another routine.
pub(crate) fn departure(routine: &str, error: &Error) -> Option<String> {
    let Error::Mismatched(
        Failure::Mismatched { one, other, .. } | Failure::Deadlock { one, other },
    ) = error
    else {
        return None;
    };
    let finalizes = |call: &str| call.starts_with(FINALIZE);
    let (left, (waiting, call)) = match (finalizes(&one.1), finalizes(&other.1)) {
        (true, false) => (one.0, other),
        (false, true) => (other.0, one),
        _ => return None,
    };
    // Only a PE that waits knows its routine.
    Some(match routine {
        FINALIZE => format!(
            "PE {left} has called {FINALIZE}, or has exited, while PE {waiting} waits in {call}: \
             all PEs must make the same calls before they end"
        ),
        _ => format!(
            "PE {left} has called {FINALIZE}, or has exited, while others wait in {routine}: all \
             PEs must make the same calls before they end"
        ),
    })
}
