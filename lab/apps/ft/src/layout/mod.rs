//! The distribution of the array over the PEs, and its transforms.
//!
//! In space each PE has whole rows along x, and its array has the order z, y, x. After the
//! transform it has whole rows along z, in the order x, y, z. The last index is contiguous in
//! memory.

mod parts;
mod pencils;
mod slabs;

pub(crate) use parts::{Parts, Plan, Region, Transforms};
pub(crate) use pencils::Pencils;
pub(crate) use slabs::Slabs;
