//! Symmetric memory: the same allocation on every PE. A PE reads and writes a peer's part without a
//! call of the peer.
//!
//! [`Team::symmetric`](crate::Team::symmetric) allocates it, and [`Symmetric`](crate::Symmetric)
//! has the operations. This module has the types of their arguments and results:
//!
//! | type | meaning |
//! | --- | --- |
//! | [`Element`], [`Word`] | the types of elements, and of those that can be changed atomically |
//! | [`Atomic`], [`Signal`], [`Until`] | an atomic operation, a signal, the condition that ends a wait |
//! | [`CompletionCounter`] | counts the puts and gets of any number of PEs |
//! | [`SymmetricRange`] | a part of an allocation |
//! | [`SharedSymmetric`] | a handle for threads that are not PEs |

// The files: `memory` is an allocation or a range of it, from the view of its PE; `access` and
// `signals` are its one-sided operations; `shared` is the handle for other threads; `area` finds
// elements by index and rank.

mod access;
mod area;
pub(crate) mod element;
pub(crate) mod memory;
pub(crate) mod shared;
mod signals;
pub(crate) mod word;

/// # Example
/// PEs take work items from a shared counter until none is left.
///
/// ```
/// use consort::{Job, Rank, ops::Sum, symmetric::Atomic};
///
/// const ITEMS: u64 = 100;
/// let results = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let next = world.symmetric::<u64>(1)?; // only PE 0's is used
///     let mut done = 0_u64;
///     while next.atomic(Rank(0), 0, Atomic::FetchAdd(1))? < ITEMS {
///         done += 1;
///     }
///     world.all_reduce(done, Sum)
/// })?;
/// assert_eq!(results, [ITEMS; 3]);
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::Atomic;
/// A change of a word that signals its PE that data has arrived.
///
/// # Example
/// Several puts, a fence, and one signal for all of them.
/// [`Symmetric::put_signal`](memory::Symmetric::put_signal) does the same for one put.
///
/// ```
/// use consort::{Job, Rank, symmetric::{Signal, Until}};
///
/// Job::threads(2).run(|pe| {
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
#[doc(inline)]
pub use consort_fabric::Until;
pub use element::Element;
pub use memory::{Ranged, SymmetricRange, Whole};
pub use shared::SharedSymmetric;
pub use word::Word;

pub use crate::completion_counter::CompletionCounter;
