//! What serves the calls of a team's PE.
//!
//! | file | what |
//! | --- | --- |
//! | `dispatch` | from a call to a plan that is kept for it, or to a new one, and the call by it |
//! | `plans` | plans that are kept |
//! | `planning`, `making` | how a plan is made |
//! | `selection`, `wisdom` | which candidate serves a call |
//! | `refinement`, `refining` | choices that are refined while the program runs |
//! | `state` | what a team's PE keeps between calls, and how a call is entered |
//! | `teams` | where a PE keeps the states of its teams |

pub(crate) mod dispatch;
pub(crate) mod making;
mod planning;
pub(crate) mod plans;
pub(crate) mod refinement;
pub(crate) mod refining;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod teams;
pub(crate) mod wisdom;
