//! The state and the machinery that serve a team's calls on one PE.
//!
//! | file | what |
//! | --- | --- |
//! | `dispatch` | finds the plan that is kept for a call, or makes a new one, and runs it |
//! | `plan_cache` | plans that are kept |
//! | `plans` | a plan, ready to be called or started |
//! | `planning`, `making` | make plans |
//! | `messages` | plans of messages from one PE to another |
//! | `selection`, `wisdom` | select the candidate that serves a call |
//! | `recording` | records what the program calls, if it is asked to |
//! | `refinement`, `refining` | refine choices while the program runs |
//! | `state` | what a PE keeps of a team between calls, and the entry of a call |
//! | `teams` | where a PE keeps the states of its teams |

pub(crate) mod dispatch;
pub(crate) mod making;
pub(crate) mod messages;
pub(crate) mod plan_cache;
mod planning;
pub(crate) mod plans;
pub(crate) mod recording;
pub(crate) mod refinement;
pub(crate) mod refining;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod teams;
pub(crate) mod wisdom;
