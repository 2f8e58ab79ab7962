//! Threads that share words and send messages, on a described machine in virtual time: what locks
//! and delegation are simulated on.
//!
//! A [`SimulatedThread`] is a [`Machine`](consort_machine::Machine), so the algorithms are those
//! that run natively. A word's value lies in the word; the time is in the model, whose mechanisms
//! are these:
//!
//! | file | what |
//! | --- | --- |
//! | `costs` | published costs of loads, stores and atomic operations, by state and distance |
//! | `lines` | which words share a line, who has copies, what others see of late stores |
//! | `traffic` | what is on its way |
//! | `world` | what threads share, and what each has |
//! | `coherence` | transactions on lines: queueing, service, copies that become invalid |
//! | `stores` | store buffers, fences, stores past the caches |
//! | `prefetch` | lines that are fetched in advance, for reading or for writing |
//! | `messages` | messages by hardware queues |
//! | `tally` | stalls by cause, remote references, counts |
//! | `thread`, `machine` | a thread, and the machine as it sees it |
//! | `simulation` | settings, the loop over events, deadlocks |
//!
//! A thread that waits for a word loads it once and sleeps until its copy is invalid, then loads it
//! again. Left out: capacities of caches, and links that are shared by transactions on different
//! lines.

mod coherence;
mod costs;
mod lines;
mod machine;
mod messages;
mod prefetch;
mod simulation;
mod stores;
mod tally;
mod thread;
mod traffic;
mod world;

pub use simulation::{ThreadSimulation, ThreadsError, ThreadsOutcome};
pub use tally::{Stall, Tally};
pub use thread::SimulatedThread;
pub use world::WaitsFor;

#[cfg(test)]
mod tests;
