//! The native [`Machine`](crate::Machine): any thread of any program, without a job.
//!
//! | file | contents |
//! | --- | --- |
//! | `machine` | the machine |
//! | `pair` | atomic exchange of two words, if the processor supports it |
//! | `stream` | stores past the caches |
//! | `threads` | thread numbers, and the mailbox and lines of each thread |
//! | `unique` | unique numbers, and the words at which threads wait by them |
//! | `monitor` | processor instructions that wait for a write to a line |
//! | `wait` | the driver of a wait: polls, yields, sleeps |

mod lines;
mod machine;
mod monitor;
mod pair;
mod stream;
mod threads;
mod unique;
mod wait;

pub use machine::NativeMachine;
pub use wait::{at_once, block_on, block_on_yielding};
