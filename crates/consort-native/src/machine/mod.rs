//! The native [`Machine`](consort_fabric::Machine): any thread of any program, without a job.
//!
//! | file | what |
//! | --- | --- |
//! | `native` | the machine |
//! | `threads` | numbers of threads, and what each has: messages, an answer, lines |
//! | `ring` | the memory of a thread's incoming messages |
//! | `sleep` | where threads sleep, by the word that they wait for |
//! | `wait` | the driver of a wait: polls, yields, sleeps |

#[cfg(not(loom))]
mod lines;
#[cfg(not(loom))]
pub(crate) mod native;
pub(crate) mod ring;
#[cfg(not(loom))]
mod sleep;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
pub(crate) mod wait;
