//! Simulated machines: the algorithms of Consort in virtual time, and models in closed form.

mod account;
pub mod analytic;
mod costs;
mod engine;
mod fabric;
mod interrupts;
mod job;
pub mod machines;
mod mail;
mod memory;
mod trace;
mod world;

pub use account::{Cause, Total};
pub use fabric::{Buffer, Call, Operands};
pub use interrupts::Listener;
pub use job::{Outcome, Pe, Simulation, SimulationError};
pub use trace::{Step, Trace};
pub use world::Lease;
