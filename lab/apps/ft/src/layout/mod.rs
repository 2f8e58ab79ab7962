//! How the array lies on the PEs, and its transforms.
//!
//! In space each PE has whole rows along x, and its array has the order z, y, x; transformed it has
//! whole rows along z, in the order x, y, z. The last index is that of neighbours in memory.

mod parts;
mod pencils;
mod slabs;

pub(crate) use parts::{Parts, Plan, Region, Transforms};
pub(crate) use pencils::Pencils;
pub(crate) use slabs::Slabs;
