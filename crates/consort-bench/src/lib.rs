//! Measuring Consort: beside the machine's limits, beside other libraries, and beside papers.
//!
//! 1. [`limits`]: what the machine itself could do;
//! 2. [`peers`]: thread libraries and MPI;
//! 3. [`harness`]: kinds of work in turn, each beside the limits of its moment;
//! 4. [`workloads`]: what is timed and is no collective;
//! 5. [`simulation`]: programs on machines that are described;
//! 6. [`calibration`] and [`prediction`]: this machine described, and the description judged;
//! 7. [`figures`]: what figures of papers measure and simulate; [`claims`]: what they claim.
//!
//! [`units`] and [`asked`] say how quantities and calls are written, and a [`page`] has what is to
//! be read of a figure.

pub mod asked;
pub mod calibration;
pub mod claims;
mod draws;
pub mod figures;
pub mod harness;
pub mod limits;
pub mod page;
pub mod peers;
pub mod prediction;
pub mod simulation;
pub mod units;
pub mod workloads;
