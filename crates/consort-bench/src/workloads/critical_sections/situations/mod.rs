//! Locks in situations in which locks are known to fail: more threads than cores, long sections,
//! bursts, many locks, readers and writers, condition variables.
//!
//! 1. `locks`, `monitors`: locks and condition variables of several libraries, each under one
//!    interface;
//! 2. `work`: the work of the threads in each situation, for any lock; `waits`: the times of waits;
//! 3. `row`: the situations, and the locks that each compares;
//! 4. `block`: threads that are in a situation for some time, and their figures;
//! 5. `race`: blocks of all locks in turn; `figures`: the machine-readable results; `table`: the
//!    readable ones.

mod block;
mod figures;
mod locks;
mod monitors;
mod race;
mod row;
mod table;
mod waits;
mod work;

pub use race::{Race, Results};
pub use row::Situation;
pub use table::{show_all, show_best};
