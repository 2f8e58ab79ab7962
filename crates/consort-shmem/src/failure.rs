//! Misuse and failures: one line on standard error, and the end of the job.

use std::{fmt, io::Write as _};

use consort_native::Failure;

use crate::{setup, world::known};

/// Says which routine of which PE found what, and ends the process and its job.
#[cold]
pub fn fail(routine: &str, what: impl fmt::Display) -> ! {
    let reason = format!("{routine}: {what}").replace('\n', " ");
    if !is_told(&reason) {
        let pe = known().map_or_else(String::new, |world| format!("PE {}: ", world.rank));
        // In one piece, so that lines of several PEs do not mix. What cannot be written is lost.
        let _ = std::io::stderr().write_all(format!("{pe}{reason}\n").as_bytes());
    }
    std::process::exit(1)
}

/// Fails the job, whose launcher then says which PE failed and why. Whether that says all: where
/// calls do not match, the line of each PE names its routine.
fn is_told(reason: &str) -> bool {
    let Some(world) = setup::of_launcher() else { return false };
    world.job.poison(&Failure::Pe { rank: world.rank, reason: reason.to_owned() });
    matches!(world.job.failure(), Some(Failure::Pe { .. } | Failure::Ended { .. }))
}
