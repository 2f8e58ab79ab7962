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
mod async_broadcasts;
mod barrier;
mod collectives;
mod counter;
mod displacements;
mod error;
mod fabric;
mod job;
mod launch;
mod nonblocking;
mod pairs;
mod pe;
mod pes;
mod pieces;
mod pod;
mod pool;
mod ranks;
mod results;
mod runtime;
mod symmetric;
mod team;
mod teams;
mod two_sided;
mod value;
mod warn;

pub use bytemuck;

pub use algorithms::{Algorithms, register};
pub use async_broadcasts::AsyncBroadcasts;
pub use barrier::{Barrier, BarrierWaitResult, Member};
pub use consort_collectives::PlanError;
pub use consort_collectives::async_broadcast::Variant as AsyncVariant;
/// # Example
/// PEs take work items from a shared counter until none is left.
///
/// ```
/// use consort::{Atomic, Pes, Rank, Sum};
///
/// const ITEMS: u64 = 100;
/// let results = Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let next = world.symmetric::<u64>(1)?; // only PE 0's is used
///     let mut done = 0_u64;
///     while next.atomic(Rank(0), 0, Atomic::FetchAdd(1))? < ITEMS {
///         done += 1;
///     }
///     world.all_reduce(done, Sum)
/// })?;
/// assert!(results.iter().all(|&(_, done)| done == ITEMS));
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::Atomic;
/// An operator that combines two values into one: a named one, a closure, or a user-defined type.
///
/// # Examples
/// A closure is an operator. It must be associative; it need not be commutative, because operands
/// keep the order of the ranks.
///
/// ```
/// use consort::{Pes, Rank};
///
/// // Composes the maps x -> a x + b.
/// let compose = |[a, b]: [i64; 2], [c, d]: [i64; 2]| [a * c, b * c + d];
/// let maps = Pes::threads(3).run(|pe| {
///     let me = i64::from(pe.world().rank().0);
///     pe.world().reduce([2, me], compose, Rank(0))
/// })?;
/// assert_eq!(maps[0].1, Some([8, 4])); // 2 (2 (2 x + 0) + 1) + 2
/// # Ok::<(), consort::Error>(())
/// ```
///
/// A closure that accesses parts of its operands states the types of both. A pattern does, too.
///
/// ```
/// use consort::Pes;
///
/// let all = Pes::threads(3).run(|pe| {
///     let mine = f64::from(pe.world().rank().0);
///     let both = |(sum, most): (f64, f64), (one, other)| (sum + one, most.max(other));
///     pe.world().all_reduce((mine, mine), both)
/// })?;
/// assert!(all.iter().all(|&(_, both)| both == (3.0, 2.0)));
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Types without an operator are rejected at compile time.
///
/// ```compile_fail,E0277
/// # use consort::{Pes, Sum};
/// Pes::threads(3).run(|pe| pe.world().all_reduce((1, 2.5), Sum).map(drop));
/// ```
///
/// A user-defined type can be declared commutative, which allows more algorithms, and has a name in
/// error messages.
///
/// ```
/// use consort::{Operator, OperatorClass, Pes};
///
/// struct Gcd;
///
/// impl Operator<u64> for Gcd {
///     const CLASS: OperatorClass = OperatorClass::Commutative;
///     const NAME: &'static str = "Gcd";
///
///     fn apply(&self, mut left: u64, mut right: u64) -> u64 {
///         while right != 0 {
///             (left, right) = (right, left % right);
///         }
///         left
///     }
/// }
///
/// let all = Pes::threads(3).run(|pe| {
///     let me = u64::from(pe.world().rank().0);
///     pe.world().all_reduce(12 * (me + 1), Gcd)
/// })?;
/// assert!(all.iter().all(|&(_, divisor)| divisor == 12));
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::Operator;
/// A change of a word that signals its PE that data has arrived.
///
/// # Example
/// Several puts, a fence, and one signal for all of them. [`Symmetric::put_signal`] does the same
/// for one put.
///
/// ```
/// use consort::{Pes, Rank, Signal, Until};
///
/// Pes::threads(2).run(|pe| {
///     let world = pe.world();
///     let data = world.symmetric::<f64>(100)?;
///     let arrived = world.symmetric::<u64>(1)?;
///     if world.rank() == Rank(0) {
///         data.put(Rank(1), 0, &[1.0, 2.0])?;
///         data.put(Rank(1), 98, &[3.0, 4.0])?;
///         data.fence()?; // the puts are visible before the signal
///         arrived.signal(Rank(1), 0, Signal::Add(1))?;
///     } else {
///         arrived.wait_until(0, Until::AtLeast(1))?;
///         assert_eq!((data.load(1)?, data.load(99)?), (2.0, 4.0));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::Signal;
/// The synchronization modes of a call: when data may move before a PE enters, and after it leaves.
///
/// # Examples
/// Exit mode All: when a PE returns, the data has moved on all PEs, so it may read a peer's copy.
///
/// ```
/// use consort::{Pes, Rank, SyncMode, SyncModes};
///
/// Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let table = world.symmetric::<u64>(1)?;
///     if world.rank() == Rank(0) {
///         table.store(0, 7)?;
///     }
///     let all_have_it = SyncModes { entry: SyncMode::Mine, exit: SyncMode::All };
///     world.with(all_have_it).broadcast_symmetric(&table, Rank(0))?;
///     let mut copy = [0];
///     table.get(world.right(), 0, &mut copy)?;
///     assert_eq!(copy, [7]);
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Loose calls overlap. The barrier before them ensures that the data is ready on all PEs, and the
/// barrier after them that it has moved.
///
/// ```
/// use consort::{Pes, Rank, SyncModes};
///
/// Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let tables = [world.symmetric::<u32>(50)?, world.symmetric::<u32>(50)?];
///     for table in &tables {
///         table.put(world.rank(), 0, &[world.rank().0; 50])?;
///     }
///     world.barrier()?;
///     let loose = world.with(SyncModes::LOOSE);
///     loose.broadcast_symmetric(&tables[0], Rank(1))?;
///     loose.broadcast_symmetric(&tables[1], Rank(2))?;
///     world.barrier()?;
///     assert_eq!((tables[0].load(49)?, tables[1].load(49)?), (1, 2));
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::SyncModes;
#[doc(inline)]
pub use consort_fabric::Until;
#[doc(inline)]
pub use consort_fabric::{
    BitAnd, BitOr, BitXor, Candidate, Collective, Max, Min, OperatorClass, Product, Query, Rank,
    Sum, SyncMode,
};
pub use consort_machine::Waiting;
#[doc(inline)]
pub use consort_native::{Failure, HeapError, Members, NoHeapSize};
#[doc(hidden)]
pub use consort_native::{Origin, UnknownOrigin};
#[doc(inline)]
pub use consort_tuner::{Arrival, ChosenBy};
pub use counter::Counter;
pub use displacements::{Displacements, DisplacementsError};
pub use error::{Error, Result, TeamError};
pub use fabric::{Fabric, MachineShape, ProcessShape, Sharing, UnknownFabric};
pub use job::{Job, Joined};
pub use nonblocking::{Overlap, Planned, PlannedBarrier, Request, Source};
pub use pe::Pe;
pub use pes::{MOST_PES, Pes};
pub use pieces::{pieces, pieces_mut};
/// Plain data: any bytes are a value, and there is no padding.
///
/// # Examples
/// A user-defined struct, with the feature `derive`. `bytemuck` need not be a dependency, because
/// this crate exports it.
///
/// ```
/// use consort::{Pes, Rank, bytemuck::Zeroable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, consort::Pod, Zeroable)]
/// #[bytemuck(crate = "consort::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i64,
/// }
///
/// let all = Pes::threads(2).run(|pe| {
///     let mine = Particle { place: [0.5; 3], charge: pe.world().rank().0.into() };
///     pe.world().all_gather(mine)
/// })?;
/// assert_eq!(all[0].1[1].charge, 1);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Slices and symmetric memory hold only plain data.
///
/// ```compile_fail,E0277
/// # use consort::{Pes, Rank};
/// Pes::threads(2).run(|pe| pe.world().broadcast_slice(&mut [true, false], Rank(0)));
/// ```
///
/// ```compile_fail,E0277
/// # use consort::Pes;
/// Pes::threads(2).run(|pe| pe.world().symmetric::<(u8, u8)>(100).map(drop));
/// ```
#[doc(inline)]
pub use pod::Pod;
pub use pool::Pool;
pub use symmetric::{
    memory::{Ranged, Symmetric, SymmetricRange, Whole},
    shared::SharedSymmetric,
    word::Word,
};
pub use team::Team;
pub use teams::Grid;
pub use two_sided::EAGER_BYTES;
pub use value::Value;
