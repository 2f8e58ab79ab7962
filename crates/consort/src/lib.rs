//! Tuned collectives and one-sided communication of threads, processes and machines.
//!
#![doc = include_str!("lib.md")]

#[cfg(test)]
use consort_sandbox as _;

/// The programs of a guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;

mod algorithms;
pub mod async_broadcasts;
mod barrier;
mod builder;
mod collectives;
mod completion_counter;
mod displacements;
pub mod error;
mod fabric;
mod job;
pub mod launch;
pub mod nonblocking;
pub mod ops;
mod pairs;
mod pe;
mod pieces;
mod pod;
mod pool;
mod ranks;
mod results;
mod run;
mod runtime;
pub mod symmetric;
pub mod sync_modes;
mod team;
mod teams;
pub mod tune;
mod two_sided;
mod value;
mod warn;

pub use bytemuck;

pub use barrier::{Barrier, BarrierMember, BarrierWaitResult};
pub use builder::JobBuilder;
#[doc(inline)]
pub use consort_fabric::Rank;
pub use consort_machine::Waiting;
pub use displacements::Displacements;
#[doc(inline)]
pub use error::{Error, Result};
pub use job::{Job, JoinedPe};
pub use pe::Pe;
pub use pieces::{pieces, pieces_mut};
/// Plain data: any bytes are a value, and there is no padding.
///
/// # Examples
/// A user-defined struct, with the feature `derive`. `bytemuck` need not be a dependency, because
/// this crate exports it.
///
/// ```
/// use consort::{Job, bytemuck::Zeroable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, consort::Pod, Zeroable)]
/// #[bytemuck(crate = "consort::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i64,
/// }
///
/// let all = Job::threads(2).run(|pe| {
///     let mine = Particle { place: [0.5; 3], charge: pe.world().rank().0.into() };
///     pe.world().all_gather(mine)
/// })?;
/// assert_eq!(all[0][1].charge, 1);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Slices and symmetric memory hold only plain data.
///
/// ```compile_fail,E0277
/// # use consort::{Job, Rank};
/// Job::threads(2).run(|pe| pe.world().broadcast_slice(&mut [true, false], Rank(0)));
/// ```
///
/// ```compile_fail,E0277
/// # use consort::Job;
/// Job::threads(2).run(|pe| pe.world().symmetric::<(u8, u8)>(100).map(drop));
/// ```
#[doc(inline)]
pub use pod::Pod;
pub use pool::Pool;
pub use results::Results;
pub use symmetric::memory::Symmetric;
pub use team::Team;
pub use teams::Grid;
pub use two_sided::EAGER_BYTES;
pub use value::Value;
