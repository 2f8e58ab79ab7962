//! Operating-system calls. Everything that only Linux can do is in `linux`.
//!
//! | file | Linux | elsewhere, and in Miri |
//! | --- | --- | --- |
//! | `affinity` | moves threads and binds them to processors | does not |
//! | `clock` | one for all processes of the machine | one for each process |
//! | `fence` | `membarrier` | none: a wake-up may be lost, and sleeps are short |
//! | `fork` | handlers of the C library notice forked children, and a shared library is pinned | the process id identifies children, and a library must not be unloaded |
//! | `futex` | the system's | threads park; a table of the process lists them with their words |
//! | `signals` | blocks a thread's signals | not needed |
//! | `slice` | shortens a thread's time slices | does not |
//! | `thread_exit` | runs work after all thread-local destructors | runs it among them |
//! | `usage` | statistics of a thread, and of memory | nothing |
//!
//! For tests, the configuration `consort_portable` selects the last column on Linux too.

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
mod portable;

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub use linux::*;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
pub use portable::*;

/// Whether this is the system that `linux` supports.
pub const IS_LINUX: bool = cfg!(all(target_os = "linux", not(any(miri, consort_portable))));
