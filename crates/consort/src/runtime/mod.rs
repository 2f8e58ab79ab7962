//! The state and the code that serve a team's calls on one PE.
//!
//! | file | contents |
//! | --- | --- |
//! | `dispatch` | finds the cached plan of a call, or creates a plan, and runs it |
//! | `plan_cache` | the cached plans |
//! | `plans` | a plan, ready to be called or started |
//! | `planning`, `making` | create plans |
//! | `messages` | plans of messages from one PE to another |
//! | `selection`, `wisdom` | select the candidate that serves a call |
//! | `recording` | records the program's calls, on request |
//! | `profiling`, `trace_file` | measure the program's calls, on request |
//! | `refinement`, `refining` | refine choices while the program runs |
//! | `state` | a PE's state of a team between calls, and the entry of a call |
//! | `teams` | the states of a PE's teams |
//! | `hold` | handles on a PE's states, and their owner |
//! | `kept` | values that a PE keeps between regions |

pub(crate) mod dispatch;
pub(crate) mod hold;
pub(crate) mod kept;
pub(crate) mod making;
pub(crate) mod messages;
pub(crate) mod plan_cache;
mod planning;
pub(crate) mod plans;
pub(crate) mod profiling;
pub(crate) mod recording;
pub(crate) mod refinement;
pub(crate) mod refining;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod teams;
mod trace_file;
pub(crate) mod wisdom;
