//! What moves calls on.
//!
//! | file | what |
//! | --- | --- |
//! | `policy` | what a PE does while it waits |
//! | `executor` | polls a call in place |
//! | `engine` | the nonblocking calls of a PE, and who polls them |
//! | `deadlock` | finds PEs that wait for each other |

pub(crate) mod deadlock;
pub(crate) mod engine;
pub(crate) mod executor;
pub(crate) mod policy;
