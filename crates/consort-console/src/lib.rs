//! The options, output, reports and signals that the commands of Consort share.
//!
//! 1. [`args`] reads the arguments that several commands take; [`usage`]: errors in them;
//! 2. [`measurement`] records the state of the machine around a measurement; [`this_machine`]
//!    describes it;
//! 3. [`results`]: the destinations of results; [`output`]: tables for people and JSON for
//!    programs; [`report`]: the same as an HTML document with plots;
//! 4. [`signals`] and [`interrupt`]: orderly ends after Ctrl-C; [`program`] runs a user's program;
//! 5. [`session`]: the part of a process in a measurement of several processes;
//! 6. [`command`] runs a command.

#[cfg(test)]
use consort_sandbox as _;

pub mod args;
pub mod command;
pub mod interrupt;
pub mod measurement;
pub mod output;
pub mod program;
pub mod report;
pub mod results;
pub mod session;
pub mod signals;
pub mod this_machine;
pub mod usage;
