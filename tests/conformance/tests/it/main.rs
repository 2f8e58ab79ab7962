//! The conformance suite on each fabric.
//!
//! | module | fabric |
//! | --- | --- |
//! | `threads` | the threads of a process, by the public interface of `consort` |
//! | `loopback` | the same on nodes between which only messages move, late and in any order |
//! | `schedules` | the simulator, whose operations take any time at all |
//! | `machines` | the simulator, on machines that are described |
//! | `toy` | messages in the memory of one thread, in any inbox, buffered or not |
//!
//! `revisions` holds what each algorithm sends to its revision, and `refusals` what it refuses to
//! its reasons. `public` is what the PEs of
//! `consort` do, as threads here and as processes in `tests/processes`. `faults` shows that the
//! simulator finds what is broken.

use consort_sandbox as _;

mod faults;
mod guides;
mod loopback;
mod machines;
mod outside_algorithm;
mod public;
mod refusals;
mod revisions;
mod schedules;
mod simulated;
mod threads;
mod toy;
mod toy_fabric;
mod toy_world;
