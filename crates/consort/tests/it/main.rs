//! Tests of the public interface, one module per subject; those that take a few tenths of a second
//! are in the program `quick`. The test selection, random numbers, and turns come from the
//! conformance suite.

use consort_sandbox as _;
use fixtures::{data, every_call, jobs, typed};

mod allocations;
mod async_broadcasts;
mod call_sites;
mod derives;
mod element_types;
mod errors;
mod failure;
mod far;
mod far_deadlocks;
mod first_lines;
#[path = "../fixtures/mod.rs"]
mod fixtures;
mod flow;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod forks;
mod forms;
mod forms_random;
mod gigabyte;
mod idling;
mod limits;
mod memory;
mod mistakes;
mod nonblocking;
mod numbers;
mod online;
mod operators;
mod owned;
mod panics;
mod plugins;
mod pools;
mod profiling;
mod programs;
mod promises;
mod recording;
mod refusals;
mod results;
mod runs;
mod starving;
mod stuck;
mod teams;
mod vector;
mod waits;
mod wisdom;
