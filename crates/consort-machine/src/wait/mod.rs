//! Waiting and waking.
//!
//! | file | what |
//! | --- | --- |
//! | `policy` | waiting policies |
//! | `patience` | how long a wait yields before it sleeps |
//! | `executor` | polls a future in place |
//! | `parker` | the word that a thread sleeps at |
//! | `sleepers` | how many threads sleep, so that wakers look at one word |

pub mod executor;
pub mod parker;
pub mod patience;
pub mod policy;
pub mod sleepers;
