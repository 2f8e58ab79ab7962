//! Collectives on machines that are described, not had.
//!
//! 1. [`machines`]: descriptions by name; `catalog`: the algorithms that one can run;
//! 2. [`program`]: what the PEs of a simulation run; `simulated`: what it came to, a call;
//! 3. `spread`: who had the data from whom;
//! 4. [`async_broadcasts`] and `contention`: experiments on message buffers that are no
//!    collectives.

pub mod async_broadcasts;
mod catalog;
mod contention;
pub mod machines;
pub mod program;
mod simulated;
mod spread;

pub use catalog::Described;
pub use contention::{Access, contention};
pub use program::{Played, Program};
pub use simulated::{Conditions, Simulated, Spent};
pub use spread::{Node, tree};
