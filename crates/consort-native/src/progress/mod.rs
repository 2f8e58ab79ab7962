//! Progress: the drivers of calls and waits.
//!
//! | file | what |
//! | --- | --- |
//! | `event` | waits of threads that do not drive a call |
//! | `engine` | polls the nonblocking calls of a PE |
//! | `deadlock` | detection of PEs that wait for each other |

pub(crate) mod deadlock;
pub(crate) mod engine;
pub(crate) mod event;
