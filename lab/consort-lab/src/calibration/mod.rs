//! Calibration: describes this machine for simulations, using only measurements of single
//! operations.
//!
//! 1. `layout`: the layout of the usable cores;
//! 2. `measure`: the times of single operations without contention; `latency`: those on one core,
//!    and loads from another core's cache;
//! 3. `describe`: the description with these numbers.

mod describe;
mod latency;
mod layout;
mod measure;

pub use describe::description;
pub use layout::Plan;
pub use measure::{Measured, measure};
