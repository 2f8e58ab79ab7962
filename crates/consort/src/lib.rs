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
#[cfg(feature = "bindings")]
pub mod bindings;
mod builder;
mod collectives;
mod completion_counter;
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derive;
mod displacements;
pub mod error;
mod fabric;
pub mod forms;
mod job;
pub mod launch;
pub mod nonblocking;
pub mod ops;
mod pairs;
mod pe;
mod pieces;
mod pool;
mod ranks;
mod rendezvous;
mod results;
mod run;
mod runtime;
pub mod symmetric;
pub mod sync_modes;
mod team;
mod team_algorithms;
mod teams;
pub mod tune;
mod two_sided;
mod value;
mod warn;
mod weights;

pub use bytemuck;

#[cfg(feature = "derive")]
#[doc(inline)]
pub use consort_derive::{Pod, Value};

pub use barrier::{Barrier, BarrierMember, BarrierWaitResult};
pub use builder::JobBuilder;
/// Plain data: any bytes are a value, and there is no padding.
///
/// These types are plain data:
///
/// - all integers and floats, and `()`;
/// - `half::f16` and `half::bf16` with the feature `half`, and `num_complex::Complex` with the
///   feature `num-complex`;
/// - arrays of plain data;
/// - structs of plain data that derive `Pod`, with the feature `derive`.
///
/// # Examples
/// A user-defined struct. It needs `#[repr(C)]`, which fixes the order of its fields, and may have
/// no padding. Structs with padding can still be values: see [`Value`].
///
/// ```
/// use consort::{Job, Rank};
///
/// #[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i64,
/// }
///
/// let all = Job::threads(2).run(|pe| {
///     let world = pe.world();
///     let mine = Particle { place: [0.5; 3], charge: world.rank().0.into() };
///     let mut slice = [mine; 10];
///     world.in_place(&mut slice).broadcast(Rank(1))?;
///     let memory = world.symmetric(1)?;
///     memory.put(world.right(), 0, &[mine])?;
///     world.all_gather(slice[9])
/// })?;
/// assert_eq!(all[0][0].charge, 1);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Short floats and complex numbers. Sums and products of `f16` and `bf16` are computed in `f32`,
/// and rounded once, at the end. For this, a call with more than two PEs copies its data and sends
/// twice the bytes. The rounding of `f32` depends on the order in which the algorithm of the call
/// adds. But all PEs get the same result, and a call that the same algorithm serves gives the same
/// result again (see [`TeamAlgorithms::force`](tune::TeamAlgorithms::force)). NaNs and infinities
/// propagate as in IEEE 754. A NaN of a short float is the type's `NAN`; in complex numbers, PEs
/// may get different NaNs.
///
/// ```
/// use consort::{Job, ops::{Max, Sum}};
/// use half::{bf16, f16};
/// use num_complex::Complex;
///
/// let all = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let mut gradient = [f16::from_f32(0.5); 100];
///     world.in_place(&mut gradient).all_reduce(Sum)?;
///     let largest = world.all_reduce(bf16::from_f32(world.rank().0 as f32), Max)?;
///     let sum = world.all_reduce(Complex::new(1.0, -0.5), Sum)?;
///     Ok((gradient[99].to_f32(), largest.to_f32(), sum))
/// })?;
/// assert_eq!(all, [(1.5, 2.0, Complex::new(3.0, -1.5)); 3]);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Slices and symmetric memory hold only plain data.
///
/// ```compile_fail,E0277
/// # use consort::{Job, Rank};
/// Job::threads(2).run(|pe| pe.world().in_place(&mut [true, false]).broadcast(Rank(0)));
/// ```
///
/// ```compile_fail,E0277
/// # use consort::Job;
/// Job::threads(2).run(|pe| pe.world().symmetric::<(u8, u8)>(100).map(drop));
/// ```
#[doc(inline)]
pub use consort_fabric::Pod;
#[doc(inline)]
pub use consort_fabric::Rank;
pub use consort_machine::Waiting;
pub use consort_native::Waits;
pub use displacements::Displacements;
#[doc(inline)]
pub use error::{Error, Result};
pub use job::{Job, JoinedPe};
pub use pe::Pe;
pub use pieces::{pieces, pieces_mut};
pub use pool::Pool;
pub use rendezvous::Rendezvous;
pub use results::Results;
pub use symmetric::memory::Symmetric;
pub use team::Team;
pub use teams::Grid;
pub use two_sided::EAGER_BYTES;
pub use value::Value;
pub use weights::Weights;
