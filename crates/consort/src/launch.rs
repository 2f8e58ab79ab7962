//! The PEs of a launch: what they are, how many there may be, and which of them share memory.

#[doc(hidden)]
pub use consort_native::Origin;

pub use crate::fabric::{Fabric, MOST_PES, MachineShape, ProcessShape, Sharing, UnknownFabric};
