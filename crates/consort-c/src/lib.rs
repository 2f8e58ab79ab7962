//! Consort for threads of programs in C and C++: barriers, collectives, teams and parallel regions.
//!
//! The header `include/consort.h` documents the functions. Each returns a code, checks its
//! arguments before it uses them, and lets no panic reach C. A handle of a PE knows its thread, and
//! its calls on other threads return an error.
//!
//! | modules | what |
//! | --- | --- |
//! | `status` | codes, the last error of a thread, and panics |
//! | `arguments` | checks of pointers, numbers, buffers and options |
//! | `job`, `team`, `pool`, `barrier` | the functions on these objects |
//! | `elements` | the types of elements, and the operators on them |
//! | `collectives`, `blocks` | collectives on equal blocks, and on blocks of different lengths |
#![expect(unsafe_code, reason = "accesses the memory of C programs")]
#![expect(
    clippy::missing_safety_doc,
    reason = "all functions require what the header says: handles of this library that are still \
              valid, and buffers of the stated lengths"
)]

#[cfg(test)]
use consort_sandbox as _;

mod arguments;
pub mod barrier;
pub mod blocks;
pub mod collectives;
mod elements;
pub mod job;
pub mod pool;
pub mod status;
pub mod team;
