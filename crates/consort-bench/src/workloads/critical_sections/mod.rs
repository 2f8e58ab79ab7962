//! Critical sections of many threads: under locks, by delegation, and under locks of other
//! libraries; stacks and queues, also without locks.
//!
//! 1. `counter`: a counter under each of these; `detached`: a counter whose threads do not wait for
//!    each operation; `containers`: a stack and a queue;
//! 2. `row`: the rows of a table, each an object with its name;
//! 3. `block`: threads that use one object for some time, and their numbers of operations;
//! 4. `race`: blocks of all rows in turn; `figures`: the machine-readable results;
//! 5. `table`: the readable results; `advice`: recommendations;
//! 6. [`situations`]: locks in situations in which locks are known to fail.

mod advice;
mod block;
mod containers;
mod counter;
mod detached;
mod figures;
mod race;
mod row;
pub mod situations;
mod table;

pub use advice::{Sections, advise, increments_of, measure};
pub use figures::Entry;
pub use race::{Race, Results};
pub use row::Subject;
pub use table::show;
