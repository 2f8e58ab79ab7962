//! Misuse and failures: one line on standard error, and the end of the job.

use std::{fmt, io::Write as _};

use crate::world;

/// Says which routine of which PE found what, and ends the process; its launcher then ends the job.
#[cold]
pub fn fail(routine: &str, what: impl fmt::Display) -> ! {
    let pe = world::known().map_or_else(String::new, |world| format!(" of PE {}", world.rank.0));
    // In one piece, so that lines of several PEs do not mix. What cannot be written is lost.
    let line = format!("{routine}{pe}: {what}\n").replace('\n', " ");
    let _ = writeln!(std::io::stderr(), "{}", line.trim_end());
    std::process::exit(1)
}
