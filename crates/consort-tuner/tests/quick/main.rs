//! The tuner from outside, on an imaginary workbench.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use consort_sandbox as _;

mod checking;
mod choosing;
mod fake;
mod files;
mod mixes;
mod noise;
mod searching;
