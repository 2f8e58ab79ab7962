//! Parallel regions and barriers of threads, by this library and by others.
//!
//! 1. `row`: a library's way to do a kind of work, and one block of it;
//! 2. `regions`, `barriers`: the rows;
//! 3. `race`: blocks of all rows in turn, with readings of the transfer in between;
//! 4. `table`: the readable results.

mod barriers;
mod race;
mod regions;
mod row;
mod table;

pub use race::{Race, Results};
pub use table::show;
