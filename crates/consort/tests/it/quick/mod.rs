//! Tests that take a few tenths of a second each, so that `ci/quick` runs them.

mod bad_input;
mod barriers;
mod counters;
mod handles;
mod joining;
mod lengths;
mod one_sided;
mod own_algorithms;
mod send;
mod two_sided;
pub(crate) mod values;
