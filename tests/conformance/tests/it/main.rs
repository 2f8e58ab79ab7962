//! The conformance suite on each fabric.
//!
//! | module | fabric |
//! | --- | --- |
//! | `threads` | the threads of a process, by the public interface of `consort` |
//! | `loopback` | the same on nodes that only exchange messages, late and in any order |
//! | `schedules` | the simulator, with operations of any duration |
//! | `levels` | the simulator, with nodes that are divided and grouped |
//! | `machines` | the simulator, on machine models |
//! | `toy` | messages in the memory of one thread, in any inbox, buffered or not |
//!
//! `revisions` checks each algorithm's operations against its revision, and `refusals` the reasons
//! for its refusals. `public` runs programs on the PEs of `consort`, as threads here and as
//! processes in `tests/processes`. `faults` shows that the simulator finds broken protocols.

use consort_sandbox as _;

mod faults;
mod guides;
mod levels;
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
