//! The nodes of a queue of requests, as in CC-SYNCH (Fatourou and Kallimanis 2012, section 3).
//!
//! | word of a node | contents |
//! | --- | --- |
//! | `NEXT` | the next node; 0 while the node has no request |
//! | `OPERATION`, `ARGUMENT` | the request |
//! | `RESULT` | its result |
//! | `STATE` | `WAITS`, then `DONE`; or another state, which the scheme defines |

#![expect(unsafe_code, reason = "finds nodes by addresses")]

use consort_machine::Line;

pub(super) const NEXT: usize = 0;
pub(super) const OPERATION: usize = 1;
pub(super) const ARGUMENT: usize = 2;
pub(super) const RESULT: usize = 3;
pub(super) const STATE: usize = 4;

pub(super) const WAITS: u64 = 0;
pub(super) const DONE: u64 = 1;
/// The first of the states that a scheme defines.
pub(super) const OTHER: u64 = 2;

/// Returns the node at an address that a scheme has read from a word of its queue, and that is not
/// 0.
pub(super) fn node(address: u64) -> &'static Line {
    // SAFETY: in each scheme, the words of the queue and `NEXT` hold 0, which the callers exclude,
    // or addresses of nodes.
    unsafe { Line::at(address) }
}
