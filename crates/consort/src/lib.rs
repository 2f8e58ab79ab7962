//! Tuned collectives and one-sided communication between the threads of a process.
//!
//! A program launches *PEs* (processing elements: threads, here) and calls collectives on a team of
//! them. Which algorithm serves a call is decided by what `consort tune` has measured on this
//! machine, or by a model where nothing is measured.
//!
//! ```
//! use consort::{Pes, Rank, Sum};
//!
//! let answers = Pes::threads(4).run(|pe| {
//!     let world = pe.world();
//!     let greeting = world.broadcast(f64::from(world.rank().0) + 0.5, Rank(3))?;
//!     world.barrier()?;
//!     world.reduce(greeting * 2.0, Sum, Rank(0)) // Some(sum) on PE 0, None elsewhere
//! })?;
//! assert_eq!(answers[0], (Rank(0), Some(28.0)));
//! assert_eq!(answers[1], (Rank(1), None));
//! # Ok::<(), consort::Error>(())
//! ```
//!
//! # Units and shapes
//! Sizes are in bytes and elements as their names say, times in nanoseconds. Ranks run from 0 to
//! the team's size less one. In a collective all PEs of the team pass the same length, root,
//! element type, operator and modes; otherwise all get [`Error::Mismatched`].
//!
//! # Failure
//! A PE that panics, returns an error of its own, or whose operator panics in a collective call
//! (even if the program catches the panic) fails the job: every call that another PE waits in, and
//! every later one, returns [`Error::PeFailed`]. Nothing hangs.

mod algorithms;
mod async_broadcasts;
mod collectives;
mod counter;
mod displacements;
mod error;
mod launch;
mod nonblocking;
mod runtime;
mod symmetric;
mod team;
mod teams;

pub use algorithms::Algorithms;
pub use async_broadcasts::AsyncBroadcasts;
pub use consort_collectives::PlanError;
pub use consort_fabric::{
    Atomic, BitAnd, BitOr, BitXor, Candidate, Collective, Max, Min, Operator, Pod, Product, Query,
    Rank, Signal, Sum, SyncMode, SyncModes, Until,
};
pub use consort_native::{Failure, HeapError, Members, Waiting};
#[doc(hidden)]
pub use consort_native::{Origin, UnknownOrigin};
pub use consort_tuner::{Arrival, ChosenBy};
pub use counter::Counter;
pub use displacements::{Displacements, DisplacementsError};
pub use error::{Error, Result, TeamError};
pub use launch::{MOST_PES, Pe, Pes};
pub use nonblocking::{Overlap, Planned, Request};
pub use symmetric::{memory::Symmetric, shared::SharedSymmetric, word::Word};
pub use team::Team;
pub use teams::Grid;
