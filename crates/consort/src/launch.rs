//! The PEs of a launch: what they are, how many there may be, and which of them share memory.

#[doc(hidden)]
pub use consort_native::Origin;

pub use crate::{
    builder::MOST_PES,
    fabric::{Fabric, MachineShape, ProcessShape, Sharing, UnknownFabric},
};
