//! Measures Consort: against the machine's limits, other libraries, and results of papers.
//!
//! 1. [`limits`]: the limits of the machine itself;
//! 2. [`peers`]: thread libraries, MPI and OpenMP;
//! 3. [`harness`]: kinds of work in turn, each with the limits at that moment;
//! 4. [`workloads`]: timed work that is not a collective;
//! 5. [`simulation`]: programs on described machines;
//! 6. [`calibration`] and [`prediction`]: describes this machine, and checks the description;
//! 7. [`figures`]: the experiments behind figures of papers; [`claims`]: the papers' claims.
//!
//! The [`environment`] says on what machine, when and how undisturbed something was measured.
//! [`units`] and [`asked`] write quantities and calls as text, a [`page`] is the text of a figure,
//! and [`wisdom`] is loaded where it is welcome.

#[cfg(test)]
use consort_sandbox as _;

pub mod asked;
pub mod calibration;
pub mod claims;
mod draws;
pub mod environment;
pub mod figures;
pub mod harness;
pub mod limits;
pub mod page;
pub mod peers;
pub mod prediction;
pub mod simulation;
pub mod units;
pub mod usage;
pub mod wisdom;
pub mod workloads;
