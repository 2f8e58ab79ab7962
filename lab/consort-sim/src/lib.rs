//! Simulated machines: the algorithms of Consort in virtual time, and models in closed form.
//!
//! A [`Simulation`] runs a program on each PE of a machine. A program makes collective calls
//! through a [`Caller`], or uses the fabric directly, from [`Pe::begin`].

#[cfg(test)]
use consort_sandbox as _;

mod account;
pub mod analytic;
mod costs;
mod engine;
mod fabric;
mod job;
pub mod machines;
mod mail;
mod notifications;
mod operands;
mod runtime;
mod threads;
mod trace;
mod world;

pub use account::{Cause, Total};
pub use costs::Effects;
pub use fabric::Call;
pub use job::{Outcome, Pe, Simulation, SimulationError};
pub use mail::Remote;
pub use notifications::Listener;
pub use operands::{Buffer, Operands};
pub use runtime::{Caller, Done, Plans};
pub use threads::{
    PrivateSections, SimulatedThread, Stall, Tally, ThreadSimulation, ThreadsError, ThreadsOutcome,
    WaitsFor,
};
pub use trace::{Step, Trace};
