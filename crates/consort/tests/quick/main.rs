//! Tests of the public interface that take a few tenths of a second each, so that `ci/quick` runs
//! them.

use consort_sandbox as _;
use fixtures::{data, every_call, jobs, typed};

mod bad_input;
mod barriers;
mod counters;
#[path = "../fixtures/mod.rs"]
#[expect(dead_code, reason = "the program `it` uses the rest")]
mod fixtures;
mod handles;
mod joining;
mod lengths;
mod one_sided;
mod own_algorithms;
mod send;
mod two_sided;
mod values;
