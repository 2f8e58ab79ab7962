//! Segments: the memory that the PEs of a job share, addressed by offsets; also a PE's memory for
//! partial results.
//!
//! A segment is reserved as a whole, and is zero. The system provides its pages when they are
//! touched, and takes back those that are cleared. On Linux it is a mapping without commitment
//! (`MAP_NORESERVE`), which core files do not contain but for the parts that are put there;
//! elsewhere it comes from the allocator.
//!
//! The size follows from what a job needs at first. More comes in *extents*, segments of their own.
//!
//! | file | what |
//! | --- | --- |
//! | `reservation` | a segment as a whole, and its pages |
//! | `shared` | segments that other processes map too, and copies of them in forked children |
//! | `backing` | where extents come from |
//! | `origin` | whether other processes may map it too |
//! | `part` | typed items in a segment |
//! | `large_page` | a trial of whether large pages are there |
//! | `no_memory` | the error when the system refuses memory |

pub(crate) mod backing;
pub(crate) mod large_page;
pub(crate) mod no_memory;
pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod reservation;
pub(crate) mod shared;
