//! What the operating system does for this crate. All that only Linux can do stands in `linux`.
//!
//! | file | Linux | elsewhere, and in Miri |
//! | --- | --- | --- |
//! | `allocator` | the address space of the C library's allocator | nothing is known |
//! | `memory` | mappings without commitment | the allocator's |
//! | `process` | files in memory that processes share | none |
//!
//! The configuration `consort_portable` selects the second column on Linux, for tests.

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
mod portable;

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
pub(crate) use portable::*;
