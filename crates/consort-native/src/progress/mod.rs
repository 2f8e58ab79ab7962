//! Progress: what drives calls and waits.
//!
//! | file | what |
//! | --- | --- |
//! | `policy` | waiting policies |
//! | `executor` | polls a call in place |
//! | `engine` | polls the nonblocking calls of a PE |
//! | `deadlock` | finds PEs that wait for each other |

pub(crate) mod deadlock;
pub(crate) mod engine;
pub(crate) mod executor;
pub(crate) mod policy;
