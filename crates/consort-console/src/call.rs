//! The arguments that name a call.

use clap::Args;
use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::{Collective, Query},
};
use consort_fabric::OperatorClass;

use crate::args;

/// A collective, and the details by which its algorithm is chosen.
#[derive(Args, Clone, Copy, Debug)]
pub struct Call {
    /// The operation: barrier, broadcast, all_reduce and so on
    #[arg(value_name = "COLLECTIVE")]
    pub collective: Collective,
    /// Bytes of a block, such as 8192, 8k or 1M
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = args::size)]
    pub bytes: usize,
    /// strict, loose, mine (default), or such as mine/all
    ///
    /// The synchronization modes, or ENTRY/EXIT.
    #[arg(long, value_name = "MODE", default_value = "mine", hide_default_value = true)]
    pub sync: SyncModes,
    /// The buffers lie in symmetric memory
    ///
    /// They must in a call that may return early.
    #[arg(long)]
    pub symmetric: bool,
    /// The operator does not commute, as for closures
    #[arg(long)]
    pub ordered: bool,
}

impl Call {
    /// Returns the query about this call among `pes` PEs.
    pub fn query(&self, pes: u32) -> Query {
        let operator =
            if self.ordered { OperatorClass::Ordered } else { OperatorClass::Commutative };
        Query {
            collective: self.collective,
            sync: self.sync,
            pes,
            bytes: self.bytes as u64,
            operator,
            // A call that may return early needs its data in symmetric memory.
            symmetric: self.symmetric || self.sync.exit == SyncMode::None,
        }
    }
}
