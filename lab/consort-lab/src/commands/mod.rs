//! The subcommands, one in each file. None imports another. `named` finds a machine by its name,
//! and `machine_page` shows one.

pub(crate) mod calibrate;
mod machine_page;
pub(crate) mod machines;
pub(crate) mod model;
mod named;
pub(crate) mod predict;
pub(crate) mod reproduce;
pub(crate) mod sim;
