//! A launch: what it fixes, what its PEs share, and what becomes of it.
//!
//! | file | what |
//! | --- | --- |
//! | `config` | what is fixed |
//! | `layout` | where the parts of the segment begin |
//! | `job` | the segment, and what a process knows of it |
//! | `call_number` | a call's number, which stands for its name |
//! | `failure`, `reason` | why a job has failed, and the same in words of shared memory |
//! | `panic` | what a thread has panicked with |
//! | `clock` | a clock that all PEs share |

pub(crate) mod call_number;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod failure;
pub(crate) mod job;
mod layout;
pub(crate) mod panic;
pub(crate) mod reason;
