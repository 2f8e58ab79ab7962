//! One PE's end of a team.
//!
//! | file | what |
//! | --- | --- |
//! | `identity` | which PE it is, of which team; joining and leaving |
//! | `numbering` | how calls are numbered and begun |
//! | `progress` | what it does for nonblocking calls and for its peers |
//! | `waits`, `pauses` | how it waits |

use std::time::Duration;

pub(crate) mod identity;
mod numbering;
mod pauses;
mod progress;
mod waits;

/// Polls between those of the operations, where there are any.
const POLLS_PER_PROGRESS: u32 = 32;

/// How often a waiting PE looks whether its peers make the same call.
const LOOK_AROUND: Duration = Duration::from_millis(5);
