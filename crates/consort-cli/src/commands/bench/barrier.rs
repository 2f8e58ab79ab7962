//! `consort bench barrier`.

use std::process::ExitCode;

use anyhow::Result;
use consort::{sync_modes::SyncModes, tune::Collective};

use super::calls::{CallOptions, Data};

const EXAMPLES: &str = "\
Examples:
  consort bench barrier                          next to hardware limits
  consort bench barrier --peers libgomp,mpi      next to OpenMP and MPI
  consort bench barrier --fabric processes       PEs are processes
  consort bench barrier --fabric mixed --pes 4   those of a host share memory
  consort bench barrier --report barrier.html    plots and tables for a browser";

/// Time a barrier, next to hardware limits and other libraries
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct BarrierBench {
    #[command(flatten)]
    pub(super) options: CallOptions,
}

/// A barrier has one synchronization mode, and no bytes.
pub(super) const NO_DATA: Data<'static> = Data {
    sizes_bytes: &[0],
    syncs: &[SyncModes::STRICT],
    symmetric: false,
    buffers: 1,
    rewrite: false,
};

impl BarrierBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.options.run(Collective::Barrier, &NO_DATA)
    }
}
