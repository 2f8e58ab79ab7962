//! The rows of MPI libraries, or the reasons why there are none.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::program::MpiProgram;
use crate::{
    harness::{Communication, Figure},
    peers::programs::{PeerRow, blank},
    units::in_a_line,
};

/// A row for each library, with all sizes; a barrier has no size. Processes on one machine are
/// bound to its cores if they fit. `stop` ends the compiler.
pub fn rows(
    what: Communication,
    (pes, on_one_machine): (u32, bool),
    sizes_bytes: &[usize],
    mpiruns: &[PathBuf],
    stop: &AtomicBool,
) -> Vec<PeerRow> {
    let sizes: Vec<u64> = match what.is_barrier() {
        true => vec![0],
        false => sizes_bytes.iter().map(|&bytes| bytes as u64).collect(),
    };
    mpiruns.iter().map(|mpirun| row(what, (pes, on_one_machine), &sizes, mpirun, stop)).collect()
}

fn row(
    what: Communication,
    (pes, on_one_machine): (u32, bool),
    sizes: &[u64],
    mpirun: &Path,
    stop: &AtomicBool,
) -> PeerRow {
    let mut blank = blank(what, pes, "processes", mpirun.display().to_string());
    if !on_one_machine {
        blank.placement = "unbound".to_owned();
    }
    let blank = match what {
        Communication::PointToPoint(pattern) => Figure {
            algorithm: Some(pattern.operations_of_mpi().to_owned()),
            params: pattern.parameters(),
            ..blank
        },
        Communication::Collective(_) => blank,
    };
    match MpiProgram::new(mpirun, what.name(), (pes, on_one_machine), sizes, stop) {
        Ok(program) => PeerRow::new(blank, sizes, move |sizes, stop| program.launch(sizes, stop)),
        Err(error) => PeerRow::absent(blank, sizes, in_a_line(&error)),
    }
}
