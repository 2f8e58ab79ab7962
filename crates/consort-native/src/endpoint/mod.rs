//! An endpoint: one PE's handle on a team.
//!
//! | file | what |
//! | --- | --- |
//! | `identity` | the PE's rank and team; joining and leaving |
//! | `numbering` | numbers and begins calls |
//! | `progress` | drives nonblocking calls, and work for peers |
//! | `waits`, `pauses` | waiting |

use std::time::Duration;

pub(crate) mod identity;
mod numbering;
mod pauses;
mod progress;
mod waits;

/// Polls of a wait between two polls of the operations, if there are any.
const POLLS_PER_PROGRESS: u32 = 32;

/// How often a waiting PE checks that its peers make the same call.
const LOOK_AROUND: Duration = Duration::from_millis(5);
