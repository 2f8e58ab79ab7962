//! Synchronization modes: whether data may move before a PE enters a call, and after it leaves.
//!
//! [`Team::with_sync`](crate::Team::with_sync) sets the modes of a team's calls. The
//! [front page](crate#synchronization-modes) compares the modes.

#[doc(inline)]
pub use consort_fabric::SyncMode;
/// The synchronization modes of a call: when data may move before a PE enters, and after it leaves.
///
/// # Examples
/// Exit mode All: when a PE returns, the data has moved on all PEs, so it may read a peer's copy.
///
/// ```
/// use consort::{Job, Rank, sync_modes::{SyncMode, SyncModes}};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let table = world.symmetric::<u64>(1)?;
///     if world.rank() == Rank(0) {
///         table.store(0, 7)?;
///     }
///     let all_have_it = SyncModes { entry: SyncMode::Mine, exit: SyncMode::All };
///     world.with_sync(all_have_it).in_symmetric(&table, &table).broadcast(Rank(0))?;
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
/// use consort::{Job, Rank, sync_modes::SyncModes};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let tables = [world.symmetric::<u32>(50)?, world.symmetric::<u32>(50)?];
///     for table in &tables {
///         table.put(world.rank(), 0, &[world.rank().0; 50])?;
///     }
///     world.barrier()?;
///     let loose = world.with_sync(SyncModes::LOOSE);
///     loose.in_symmetric(&tables[0], &tables[0]).broadcast(Rank(1))?;
///     loose.in_symmetric(&tables[1], &tables[1]).broadcast(Rank(2))?;
///     world.barrier()?;
///     assert_eq!((tables[0].load(49)?, tables[1].load(49)?), (1, 2));
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::SyncModes;
