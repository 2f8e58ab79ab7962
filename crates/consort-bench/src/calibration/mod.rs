//! This machine as a description that others are simulated by: made of single operations alone.
//!
//! 1. `layout`: how the usable cores are connected;
//! 2. `measure`: what single operations take, nobody in the way;
//! 3. `describe`: the description that these come to.

mod describe;
mod layout;
mod measure;

pub use describe::description;
pub use layout::Plan;
pub use measure::{Measured, measure};
