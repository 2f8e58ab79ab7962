//! Progress: what drives calls and waits.
//!
//! | file | what |
//! | --- | --- |
//! | `policy` | waiting policies |
//! | `patience` | how long a wait yields before it sleeps |
//! | `event` | waits of threads that drive no call |
//! | `executor` | polls a call in place |
//! | `engine` | polls the nonblocking calls of a PE |
//! | `deadlock` | finds PEs that wait for each other |

pub(crate) mod deadlock;
pub(crate) mod engine;
pub(crate) mod event;
pub(crate) mod executor;
pub(crate) mod patience;
pub(crate) mod policy;
