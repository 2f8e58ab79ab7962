//! The shared-memory fabric: one PE's view of one collective call.
//!
//! | file | what |
//! | --- | --- |
//! | `view` | the call: the position of its inbox, and its buffers |
//! | `local`, `messages`, `rma`, `rendezvous`, `counters`, `credits` | the parts of the fabric |
//! | `remote` | a peer's memory |
//! | `far` | memory of far PEs |
//! | `waits` | futures that return pending and name the word to watch |
//! | `operands` | the buffers and the operator that the caller passes |
//! | `started`, `pending_calls` | nonblocking calls |

mod counters;
mod credits;
mod far;
mod local;
mod messages;
pub(crate) mod operands;
pub(crate) mod pending_calls;
pub(crate) mod remote;
mod rendezvous;
mod rma;
pub(crate) mod started;
#[cfg(test)]
mod tests;
pub(crate) mod view;
mod waits;
