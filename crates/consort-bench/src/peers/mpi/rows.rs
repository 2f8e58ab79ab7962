//! The rows of MPI libraries, or the reasons why there are none.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use consort::Collective;

use super::program::Program;
use crate::{
    peers::programs::{Row, blank},
    units::in_a_line,
};

/// A row for each library, with all sizes; a barrier has no size. If no `mpirun` is named, the one
/// in `PATH` is used. Processes on one machine are bound to its cores if they fit. `stop` ends the
/// compiler.
pub fn rows(
    what: Collective,
    (pes, on_one_machine): (u32, bool),
    sizes_bytes: &[usize],
    mpiruns: &[PathBuf],
    stop: &AtomicBool,
) -> Vec<Row> {
    let in_path = [PathBuf::from("mpirun")];
    let mpiruns = if mpiruns.is_empty() { &in_path } else { mpiruns };
    let sizes: Vec<u64> = match what {
        Collective::Barrier => vec![0],
        _ => sizes_bytes.iter().map(|&bytes| bytes as u64).collect(),
    };
    mpiruns.iter().map(|mpirun| row(what, (pes, on_one_machine), &sizes, mpirun, stop)).collect()
}

fn row(
    what: Collective,
    (pes, on_one_machine): (u32, bool),
    sizes: &[u64],
    mpirun: &Path,
    stop: &AtomicBool,
) -> Row {
    let blank = blank(what, pes, "processes", mpirun.display().to_string());
    match Program::new(mpirun, what.name(), (pes, on_one_machine), sizes, stop) {
        Ok(program) => Row::new(blank, sizes, move |sizes, stop| program.launch(sizes, stop)),
        Err(error) => Row::absent(blank, sizes, in_a_line(&error)),
    }
}
