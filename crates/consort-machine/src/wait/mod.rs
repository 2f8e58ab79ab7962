//! Waiting and waking.
//!
//! | file | contents |
//! | --- | --- |
//! | `policy` | waiting policies |
//! | `patience` | how long a wait yields before it sleeps |
//! | `executor` | polls a future in place |
//! | `parker` | the word at which a thread sleeps |
//! | `sleepers` | how many threads sleep, so that wakers check a single word |

pub mod executor;
pub mod parker;
pub mod patience;
pub mod policy;
pub mod sleepers;
