//! OpenSHMEM 1.6 over Consort.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the memory is that of C programs")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise of a C program covers all that a routine does with an argument"
)]
#![expect(clippy::too_many_arguments, reason = "routines have the parameters of the specification")]

pub mod active_sets;
pub mod allocator;
pub mod atomic;
pub mod collectives;
pub mod contexts;
pub mod counting;
pub mod elements;
pub mod environment;
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
