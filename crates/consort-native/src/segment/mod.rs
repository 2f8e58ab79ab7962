//! Segments: the memory that the PEs of a job share, addressed by offsets. Also a PE's memory for
//! partial results.
//!
//! A segment is reserved as a whole and is zero. The system provides a page when it is first
//! touched, and takes back pages that are cleared. On Linux a segment is a mapping without
//! commitment (`MAP_NORESERVE`). Core files contain only the parts of a segment that are explicitly
//! included. On other systems a segment comes from the allocator.
//!
//! The size is that of the job's needs at its start. Memory that the job needs later comes from
//! *extents*, which are separate segments.
//!
//! | file | what |
//! | --- | --- |
//! | `reservation` | a segment as a whole, and its pages |
//! | `shared` | segments that other processes also map, and copies of them in forked children |
//! | `backing` | where extents come from |
//! | `origin` | whether other processes can map a segment |
//! | `slice` | typed items in a segment |
//! | `large_page` | a test of whether large pages are available |
//! | `memory_error` | the error when the system refuses memory |

pub(crate) mod backing;
pub(crate) mod large_page;
pub(crate) mod memory_error;
pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod reservation;
pub(crate) mod shared;
pub(crate) mod slice;
