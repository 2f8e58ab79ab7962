//! A fence that the system executes on all running threads: those of this process, or of all
//! processes that take part.

#![expect(unsafe_code, reason = "makes system calls")]

use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

/// A command of the system call `membarrier`, for which the C library has no function.
type Command = libc::c_int;

/// Calls the system; returns a negative number if it refuses.
fn membarrier(command: Command) -> libc::c_long {
    // SAFETY: the call takes only numbers, and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// A kind of fence. The process registers for it when it first needs it.
///
/// There is no lock: a child may be forked while another thread registers, which takes
/// milliseconds. The child would then wait for that thread forever. So threads may register twice.
struct Fence {
    kind: Command,
    register: Command,
    /// [`UNKNOWN`], [`ABSENT`] or [`PRESENT`].
    state: AtomicU8,
}

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

impl Fence {
    const fn new(kind: Command, register: Command) -> Self {
        Self { kind, register, state: AtomicU8::new(UNKNOWN) }
    }

    /// Returns whether a thread has asked for the fence before.
    fn is_known(&self) -> bool {
        self.state.load(Relaxed) != UNKNOWN
    }

    /// Returns whether the system has the fence.
    fn is_supported(&self) -> bool {
        // Relaxed: it publishes no other data.
        match self.state.load(Relaxed) {
            UNKNOWN => {
                let known = membarrier(libc::MEMBARRIER_CMD_QUERY);
                let is_known = known > 0 && known & libc::c_long::from(self.kind) != 0;
                let is_there = is_known && membarrier(self.register) == 0;
                self.state.store(if is_there { PRESENT } else { ABSENT }, Relaxed);
                is_there
            }
            state => state == PRESENT,
        }
    }
}

/// The fence for the threads of this process.
static OF_PROCESS: Fence = Fence::new(
    libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED,
    libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
);

/// Registers for the fence of this process's threads if the process has one thread. That takes some
/// microseconds. With more threads it takes some 20 milliseconds, because the system then waits for
/// all processors.
pub fn register_early() {
    if OF_PROCESS.is_known() {
        return;
    }
    // A folder has a link for itself, one in its parent, and one in each folder in it.
    let threads = fs::metadata("/proc/self/task").map(|folder| folder.nlink().saturating_sub(2));
    if threads.is_ok_and(|threads| threads == 1) {
        OF_PROCESS.is_supported();
    }
}

/// Lets threads of other processes make this process's threads fence. Returns whether they can.
pub fn take_part() -> bool {
    static FENCE: Fence = Fence::new(
        libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED,
        libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
    );
    FENCE.is_supported()
}

/// Executes a fence on the threads of this process; returns whether it did.
pub fn on_all_threads() -> bool {
    OF_PROCESS.is_supported() && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
}

/// Executes a fence on the threads of all processes that take part, which must include this one;
/// returns whether it did.
pub fn on_all_processes() -> bool {
    take_part() && membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0
}
