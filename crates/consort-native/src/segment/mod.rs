//! Segments: the memory that the PEs of a job share, addressed by offsets; also a PE's memory for
//! partial results.
//!
//! A segment is reserved as a whole, and is zero. The system provides its pages when they are
//! touched, and takes back those that are cleared. On Linux it is a mapping without commitment
//! (`MAP_NORESERVE`), since a job reserves far more than it uses; elsewhere it comes from the
//! allocator.
//!
//! | file | what |
//! | --- | --- |
//! | `reservation` | a segment as a whole, and its pages |
//! | `origin` | whether other processes may map it too |
//! | `part` | typed items in a segment |

pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod reservation;
