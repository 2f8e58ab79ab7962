//! The native [`Machine`](consort_fabric::Machine): any thread of any program, without a job.
//!
//! | file | what |
//! | --- | --- |
//! | `native` | the machine |
//! | `pair` | two words that are exchanged at once, where the processor can |
//! | `stream` | stores past the caches |
//! | `threads` | numbers of threads, and what each has: messages, an answer, lines |
//! | `sleep` | where threads sleep, by the word that they wait for |
//! | `monitor` | how the processor itself waits for a line |
//! | `wait` | the driver of a wait: polls, yields, sleeps |

mod lines;
mod monitor;
pub(crate) mod native;
mod pair;
mod sleep;
mod stream;
mod threads;
pub(crate) mod wait;
