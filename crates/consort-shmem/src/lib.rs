//! OpenSHMEM 1.6 over Consort, for programs in C and C++: PEs are processes of one machine, or
//! those of an MPI on many machines.
//!
//! The functions are the routines of the specification, and `exports` exports them to C with their
//! names and types. None returns an error: if a program uses one wrongly, or its job has failed,
//! one line reports the routine and the reason, and the process ends (`failure`). The requested
//! thread level decides which threads may call.
//!
//! | modules | what |
//! | --- | --- |
//! | `setup`, `environment`, `info` | the job, and its environment variables |
//! | `failure`, `exits` | its end: misuse, failures, and processes that exit |
//! | `world` | the job as seen by this PE: where symmetric memory is, here and on its peers |
//! | `memory`, `allocator` | the symmetric heap, with the same layout on all PEs |
//! | `rma`, `strided`, `atomic`, `signal`, `wait`, `locks` | one-sided routines |
//! | `counting` | counting puts, an extension |
//! | `teams`, `contexts`, `handles` | teams and contexts, and the objects behind their C handles |
//! | `collectives`, `reductions`, `active_sets` | collective routines, by Consort's algorithms |
//! | `elements` | the types of elements, and the operators on them |
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "accesses the memory of C programs")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise of a C program covers all uses of an argument in a routine"
)]

#[cfg(test)]
use consort_sandbox as _;

pub mod active_sets;
pub mod allocator;
pub mod atomic;
pub mod collectives;
pub mod contexts;
pub mod counting;
pub mod elements;
pub mod environment;
mod exits;
mod exports;
pub mod failure;
mod handles;
pub mod info;
pub mod locks;
pub mod memory;
pub mod reductions;
pub mod rma;
pub mod setup;
pub mod signal;
pub mod strided;
pub mod teams;
pub mod wait;
pub mod world;
