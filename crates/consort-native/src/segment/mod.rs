//! The memory that the PEs of a job share: one region, in which places are named by their offsets;
//! and a PE's own for partial results.
//!
//! It is reserved as a whole and zero. The system gives its pages as they are touched, and takes
//! back those that are cleared. On Linux it is a mapping without commitment (`MAP_NORESERVE`),
//! since a job reserves far more than it uses; elsewhere it comes from the allocator.
//!
//! | file | what |
//! | --- | --- |
//! | `reservation` | the memory as a whole, and its pages |
//! | `origin` | whether other processes may map it too |
//! | `mapped`, `allocated` | where it comes from: the system, or the allocator |
//! | `part` | items that lie in a segment |

#[cfg(any(test, not(target_os = "linux"), miri))]
mod allocated;
#[cfg(all(target_os = "linux", not(miri)))]
mod mapped;
pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod reservation;
