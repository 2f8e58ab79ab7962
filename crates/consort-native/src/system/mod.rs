//! Services of the operating system. Everything that only Linux can do is in `linux`.
//!
//! | file | Linux | elsewhere, and in Miri |
//! | --- | --- | --- |
//! | `allocator` | the address space of the C library's allocator | unknown |
//! | `memory` | mappings without commitment | memory of the allocator |
//! | `process` | files in memory that processes share | not available |
//!
//! The configuration `consort_portable` selects the last column on Linux, for tests.

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
mod portable;

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
pub(crate) use portable::*;
