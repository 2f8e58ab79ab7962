//! OpenSHMEM 1.6 over Consort, for programs in C and C++: PEs are processes of one machine, or
//! those of an MPI on many.
//!
//! The functions are the routines of the specification, and `exports` gives them to C by their
//! names and types. None returns an error: a program that uses one wrongly, or whose job has
//! failed, is told the routine and the reason in one line, and the process ends (`failure`). Which
//! threads may call them is what the program has asked `setup` for.
//!
//! | modules | what |
//! | --- | --- |
//! | `setup`, `environment`, `info` | the job, and what the environment says |
//! | `failure`, `exits`, `departures` | its end: misuse, failures, and processes that exit |
//! | `world` | the job as this PE sees it: where symmetric memory is, here and on its peers |
//! | `memory`, `allocator` | the symmetric heap, which all PEs divide alike |
//! | `rma`, `strided`, `atomic`, `signal`, `wait`, `ordering`, `locks` | one-sided routines |
//! | `counting` | counting puts, an extension |
//! | `teams`, `contexts`, `handles` | who takes part, and what their handles in C refer to |
//! | `collectives`, `reductions`, `active_sets` | collective routines, of Consort's algorithms |
//! | `elements` | the types of elements, and what combines them |
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the memory is that of C programs")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise of a C program covers all that a routine does with an argument"
)]
#![expect(clippy::too_many_arguments, reason = "routines have the parameters of the specification")]

#[cfg(test)]
use consort_sandbox as _;

pub mod active_sets;
pub mod allocator;
pub mod atomic;
pub mod collectives;
pub mod contexts;
pub mod counting;
mod departures;
pub mod elements;
pub mod environment;
mod exits;
mod exports;
pub mod failure;
mod handles;
pub mod info;
pub mod locks;
pub mod memory;
pub mod ordering;
pub mod reductions;
pub mod rma;
pub mod setup;
pub mod signal;
pub mod strided;
pub mod teams;
pub mod wait;
pub mod world;
