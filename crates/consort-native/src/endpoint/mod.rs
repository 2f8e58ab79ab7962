//! An endpoint: one PE's handle to a team.
//!
//! | file | what |
//! | --- | --- |
//! | `identity` | the PE's rank and team; joining and leaving |
//! | `numbering` | numbers and begins calls |
//! | `progress` | drives nonblocking calls, and does work for peers |
//! | `waits`, `backoff` | waiting |
//! | `placement` | leaves a processor on which another PE waits |
//! | `wait_counts` | counts the pauses of waits |

mod backoff;
pub(crate) mod identity;
mod numbering;
mod placement;
mod progress;
pub(crate) mod wait_counts;
mod waits;
