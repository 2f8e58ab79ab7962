//! A fence that the system executes on all running threads of the process.

use std::sync::OnceLock;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// Whether the system has such a fence. The process registers for it once.
fn is_there() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// Executes it; returns whether it did.
pub(crate) fn on_all_threads() -> bool {
    is_there() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}
