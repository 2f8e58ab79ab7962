//! The PEs of a launch: their kind, the maximum number of PEs, and which of them share memory.
//!
//! [`Job::threads`](crate::Job::threads), [`Job::from_env`](crate::Job::from_env) and
//! [`Job::processes`](crate::Job::processes) configure a launch. [`Pe::fabric`](crate::Pe::fabric)
//! returns the kind of the PEs of a launch.

pub use crate::{
    fabric::{Fabric, MOST_PES, MachineShape, ProcessShape, Sharing, UnknownFabric},
    runtime::kept::Kept,
};
