//! The shared-memory fabric: one collective as a PE sees it.
//!
//! | file | what |
//! | --- | --- |
//! | `view` | the call: where its inbox lies, and its buffers |
//! | `local`, `messages`, `rma`, `rendezvous`, `counters`, `credits` | the parts of the fabric |
//! | `remote` | a peer's memory |
//! | `waits` | futures that are pending, and say which word to watch |
//! | `operands` | what a caller brings |
//! | `started`, `pending_calls` | nonblocking calls |

mod counters;
mod credits;
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
