//! Progress: what drives calls and waits.
//!
//! | file | what |
//! | --- | --- |
//! | `event` | waits of threads that drive no call |
//! | `engine` | polls the nonblocking calls of a PE |
//! | `deadlock` | finds PEs that wait for each other |

pub(crate) mod deadlock;
pub(crate) mod engine;
pub(crate) mod event;
