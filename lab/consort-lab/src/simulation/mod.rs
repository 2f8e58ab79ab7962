//! Collectives on described machines.
//!
//! 1. [`machines`]: descriptions by name; `catalog`: the algorithms that a machine can run;
//! 2. [`program`]: the program of a simulation's PEs; `simulated`: the results of a call;
//! 3. `spread`: the paths of data between PEs;
//! 4. [`counting`]: programs with counting puts; [`applications`]: the calls of the applications;
//! 5. [`async_broadcasts`], `contention`, `transfers` and `interrupts`: experiments on message
//!    buffers, links and interrupts that are not collectives.

pub mod applications;
pub mod async_broadcasts;
mod catalog;
mod contention;
pub mod counting;
mod interrupts;
pub mod machines;
pub mod program;
mod simulated;
mod spread;
mod transfers;

pub use catalog::Described;
pub use contention::contention;
pub use interrupts::interrupts_ns;
pub use program::{Program, ProgramOutcome};
pub use simulated::{Conditions, Simulated, Spent};
pub use spread::{Node, tree};
pub use transfers::{Load, Loaded, Transfer, loaded, transfer_ns};
