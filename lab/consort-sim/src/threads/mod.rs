//! Threads that share words and send messages, on a described machine in virtual time. Locks and
//! delegation are simulated on them.
//!
//! A [`SimulatedThread`] is a [`Machine`](consort_machine::Machine), so the algorithms are those
//! that run natively. A word's value is in the word. The time is in the model, which has these
//! parts:
//!
//! | file | contents |
//! | --- | --- |
//! | `costs` | published costs of loads, stores and atomic operations, by state and distance |
//! | `lines` | which words share a line, which cores have copies, which values others see before late stores |
//! | `traffic` | transactions and messages in transit |
//! | `world` | the state that threads share, and the state of each |
//! | `coherence` | transactions on lines: queueing, service, invalidation of copies |
//! | `stores` | store buffers, fences, stores past the caches |
//! | `prefetch` | lines that are fetched in advance, for reading or for writing |
//! | `messages` | messages in hardware queues |
//! | `sections` | sections whose data only sections access |
//! | `tally` | stalls by cause, remote references, counts |
//! | `thread`, `machine` | a thread, and the machine that it sees |
//! | `simulation` | settings, the loop over events, deadlocks |
//!
//! A thread that waits for a word loads it once, sleeps until its copy is invalid, and then loads
//! it again. The model leaves out capacities of caches, and links that transactions on different
//! lines share.

mod coherence;
mod costs;
mod lines;
mod machine;
mod messages;
mod prefetch;
mod sections;
mod simulation;
mod stores;
mod tally;
mod thread;
mod traffic;
mod world;

pub use sections::PrivateSections;
pub use simulation::{ThreadSimulation, ThreadsError, ThreadsOutcome};
pub use tally::{Stall, Tally};
pub use thread::SimulatedThread;
pub use world::WaitsFor;

#[cfg(test)]
mod tests;
