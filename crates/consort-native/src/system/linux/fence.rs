//! A fence that the system executes on all running threads: of the process, or of all processes
//! that take part.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// A kind of fence, for which the process registers when it first needs it.
///
/// There is no lock: a child may be forked while another thread registers, which takes
/// milliseconds, and the child would wait for that thread for ever. Threads may register twice.
struct Fence {
    kind: MembarrierCommand,
    register: MembarrierCommand,
    /// [`UNKNOWN`], [`ABSENT`] or [`PRESENT`].
    state: AtomicU8,
}

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

impl Fence {
    const fn new(kind: MembarrierCommand, register: MembarrierCommand) -> Self {
        Self { kind, register, state: AtomicU8::new(UNKNOWN) }
    }

    /// Whether the system has the fence.
    fn is_there(&self) -> bool {
        // Relaxed: it publishes no other data.
        match self.state.load(Relaxed) {
            UNKNOWN => {
                let is_known = membarrier_query().contains_command(self.kind);
                let is_there = is_known && membarrier(self.register).is_ok();
                self.state.store(if is_there { PRESENT } else { ABSENT }, Relaxed);
                is_there
            }
            state => state == PRESENT,
        }
    }
}

/// Whether the system has one for the threads of this process.
fn is_here() -> bool {
    static FENCE: Fence = Fence::new(
        MembarrierCommand::PrivateExpedited,
        MembarrierCommand::RegisterPrivateExpedited,
    );
    FENCE.is_there()
}

/// Lets threads of other processes make those of this one fence. Returns whether they can.
pub(crate) fn take_part() -> bool {
    static FENCE: Fence =
        Fence::new(MembarrierCommand::GlobalExpedited, MembarrierCommand::RegisterGlobalExpedited);
    FENCE.is_there()
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
