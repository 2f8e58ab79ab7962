//! Measures Consort against the machine's limits and other libraries.
//!
//! 1. [`limits`]: the limits of the machine itself;
//! 2. [`peers`]: thread libraries, MPI and OpenMP;
//! 3. [`harness`]: times kinds of work in turn, each with the limits at that moment;
//! 4. [`workloads`]: timed work that is not a collective.
//!
//! The [`environment`] records the circumstances of a measurement: machine, time and disturbances.
//! A [`gain`] compares two results. [`units`] and [`query_json`] write quantities and calls as
//! text, a [`page`] is a text for people, and [`wisdom`] is loaded if it exists.

#[cfg(test)]
use consort_sandbox as _;

pub mod environment;
pub mod gain;
pub mod harness;
pub mod limits;
pub mod page;
pub mod peers;
pub mod query_json;
pub mod rng;
pub mod units;
pub mod wisdom;
pub mod workloads;
