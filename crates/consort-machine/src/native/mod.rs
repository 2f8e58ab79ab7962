//! The native [`Machine`](crate::Machine): any thread of any program, without a job.
//!
//! | file | what |
//! | --- | --- |
//! | `machine` | the machine |
//! | `pair` | two words that are exchanged at once, where the processor can |
//! | `stream` | stores past the caches |
//! | `threads` | numbers of threads, and what each has: messages, an answer, lines |
//! | `sleep` | where threads sleep, by the word that they wait for |
//! | `monitor` | how the processor itself waits for a line |
//! | `wait` | the driver of a wait: polls, yields, sleeps |

mod lines;
mod machine;
mod monitor;
mod pair;
mod sleep;
mod stream;
mod threads;
mod wait;

pub use machine::NativeMachine;
pub use wait::{at_once, block_on, block_on_patiently};
