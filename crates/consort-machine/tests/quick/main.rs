//! The native machine, tested from the outside.

use consort_sandbox as _;

// Only this system knows when a process forks.
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod fork_safe;
mod machine;
