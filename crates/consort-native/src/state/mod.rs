//! State that the PEs of a job share in addition to messages: atomics in the segment.
//!
//! | file | what |
//! | --- | --- |
//! | `poison` | whether and why the job has failed |
//! | `header` | the state of the job and of each PE |
//! | `access_flag` | whether a PE copies a peer's memory |
//! | `heartbeat` | the call in which a PE waits |

pub(crate) mod access_flag;
pub(crate) mod header;
pub(crate) mod heartbeat;
pub(crate) mod poison;
