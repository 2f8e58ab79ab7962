//! The PEs of a launch: what they are, how many there may be, and which of them share memory.
//!
//! [`Job::threads`](crate::Job::threads), [`Job::from_env`](crate::Job::from_env) and
//! [`Job::processes`](crate::Job::processes) configure a launch, and [`Pe::fabric`](crate::Pe::fabric) returns what its PEs are.

#[doc(hidden)]
pub use consort_native::Origin;

pub use crate::{
    fabric::{Fabric, MOST_PES, MachineShape, ProcessShape, Sharing, UnknownFabric},
    runtime::kept::Kept,
};
