//! What the PEs of a job share besides messages, in the segment: atomics alone.
//!
//! | file | what |
//! | --- | --- |
//! | `poison` | that the job has failed, and why |
//! | `parker` | where a PE sleeps |
//! | `accessing` | whether a PE copies a peer's memory |
//! | `beat` | in which call a PE waits |
//! | `queue` | messages of locks and delegation |

pub(crate) mod accessing;
pub(crate) mod beat;
pub(crate) mod header;
pub(crate) mod parker;
pub(crate) mod poison;
pub(crate) mod queue;
