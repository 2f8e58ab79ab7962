//! A fence that the system executes on all running threads: of the process, or of all processes
//! that take part.

use std::sync::OnceLock;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// Whether the system has such a fence. The process registers for it once.
fn is_there(kind: MembarrierCommand, register: MembarrierCommand) -> bool {
    membarrier_query().contains_command(kind) && membarrier(register).is_ok()
}

/// Whether it has one for the threads of this process.
fn is_here() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        is_there(MembarrierCommand::PrivateExpedited, MembarrierCommand::RegisterPrivateExpedited)
    })
}

/// Lets threads of other processes make those of this one fence. Returns whether they can.
pub(crate) fn take_part() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        is_there(MembarrierCommand::GlobalExpedited, MembarrierCommand::RegisterGlobalExpedited)
    })
}

/// Executes it on the threads of this process; returns whether it did.
pub(crate) fn on_all_threads() -> bool {
    is_here() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Executes it on the threads of all processes that take part, of which this must be one; returns
/// whether it did.
pub(crate) fn on_all_processes() -> bool {
    take_part() && membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}
