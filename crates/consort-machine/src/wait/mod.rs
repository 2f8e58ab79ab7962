//! Waiting and waking.
//!
//! | file | contents |
//! | --- | --- |
//! | `policy` | waiting policies |
//! | `spin_budget` | how long a wait yields before it sleeps |
//! | `executor` | polls a future in place |
//! | `parker` | the word at which a thread sleeps |
//! | `moves` | decides when a thread leaves a processor that it shares |
//! | `sleepers` | how many threads sleep, so that wakers check a single word |

pub mod executor;
pub mod moves;
pub mod parker;
pub mod policy;
pub mod sleepers;
pub mod spin_budget;
