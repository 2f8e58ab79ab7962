//! State that the PEs of a job share besides messages: atomics in the segment.
//!
//! | file | what |
//! | --- | --- |
//! | `poison` | whether and why the job has failed |
//! | `header` | the states of all PEs, and what the job is |
//! | `accessing` | whether a PE copies a peer's memory |
//! | `beat` | the call that a PE waits in |

pub(crate) mod accessing;
pub(crate) mod beat;
pub(crate) mod header;
pub(crate) mod poison;
