//! Programs that counting puts are made for, timed with them and with the older ways in turn.
//!
//! Source: Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! section 3: a ping-pong, an all-to-all, and a pipelined stencil.
//!
//! | way | what a PE does |
//! | --- | --- |
//! | counted put | one operation; the receiver waits for a number of them |
//! | put, fence, flag | a put, a fence, and a signal of its own; the receiver waits for that |
//! | put, barrier | puts, and a barrier of all PEs |

mod all_to_all;
mod kernel;
mod ping_pong;
mod race;
mod stencil;
mod table;

pub use race::{Race, Times, WAYS, Workload};
pub use table::show;
