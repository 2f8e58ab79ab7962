//! Programs that are timed in turn with counting puts and with the operations that these replace.
//!
//! Source: Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! section 3: a ping-pong, an all-to-all, and a pipelined stencil.
//!
//! | method | operations |
//! | --- | --- |
//! | counted put | one operation; the receiver waits for a number of them |
//! | put, fence, flag | a put, a fence, and a separate signal; the receiver waits for the signal |
//! | put, barrier | puts, and a barrier of all PEs |

mod all_to_all;
mod ping_pong;
mod program;
mod race;
mod stencil;

pub use race::{METHODS, Race, Times, Workload, show};
