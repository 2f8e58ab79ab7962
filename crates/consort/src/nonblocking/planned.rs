//! Nonblocking calls that are planned once and started many times: MPI's persistent collectives.

use std::{fmt, panic::Location, sync::Arc};

use consort_fabric::{Collective, Operator, Pod, Rank};
use consort_native::Site;

use super::{
    Kind, Request,
    buffers::{Nothing, With},
};
use crate::{Error, Result, Team};

/// The function that starts a planned call on its data at a place in the program.
type Start<'p, T> = Box<dyn Fn(Vec<T>, Site) -> Result<Request<'p, Vec<T>>> + 'p>;

/// A planned nonblocking call, from [`Team::plan_broadcast`] or [`Team::plan_all_reduce`]. Its
/// algorithm was chosen when it was planned.
///
/// ```
/// use consort::{Pes, Rank};
///
/// Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let steps = world.plan_broadcast::<u32>(100, Rank(0))?;
///     let mut data = vec![world.rank().0; 100];
///     for step in 1..=5 {
///         data[0] = step * (world.rank().0 + 1);
///         data = steps.start(data)?.wait()?; // the vector comes back
///         assert_eq!((data[0], data[99]), (step, 0));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Planned<'p, T> {
    len: usize,
    start: Start<'p, T>,
}

/// # Nonblocking collectives that are planned once
impl<'p> Team<'p> {
    /// Plans broadcasts of `len` elements from the root. Local, but all PEs of the team start the
    /// same calls.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Plan`], [`Error::Freed`].
    pub fn plan_broadcast<T: Pod + Send>(&self, len: usize, root: Rank) -> Result<Planned<'p, T>> {
        let kind = Kind::of(Collective::Broadcast, Some(root), len);
        let (team, ready) = (*self, self.nonblocking_plan::<T>(kind, &Nothing)?);
        let start = move |data, site| team.start_broadcast_by(Arc::clone(&ready), root, data, site);
        Ok(Planned { len, start: Box::new(start) })
    }

    /// Plans all-reduces of `len` elements. Local, but all PEs of the team start the same calls.
    ///
    /// # Errors
    /// [`Error::Plan`], [`Error::Freed`].
    ///
    /// ```
    /// # use consort::{Pes, Sum};
    /// Pes::threads(2).run(|pe| {
    ///     let sums = pe.world().plan_all_reduce::<f64, _>(3, Sum)?;
    ///     for step in 0..10 {
    ///         let sum = sums.start(vec![f64::from(step); 3])?;
    ///         assert_eq!(sum.wait()?[0], f64::from(2 * step));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn plan_all_reduce<T, O>(&self, len: usize, operator: O) -> Result<Planned<'p, T>>
    where
        T: Pod + Send,
        O: Operator<T> + Clone + Send + 'static,
    {
        let kind = Kind::of(Collective::AllReduce, None, len);
        let combine = With(operator);
        let (team, ready) = (*self, self.nonblocking_plan::<T>(kind, &combine)?);
        let start = move |source, site| {
            team.start_all_reduce_by(Arc::clone(&ready), source, combine.clone(), site)
        };
        Ok(Planned { len, start: Box::new(start) })
    }
}

impl<'p, T: Pod> Planned<'p, T> {
    /// Starts the call on `data`, which has the planned length. Collective.
    ///
    /// # Errors
    /// [`Error::Lengths`], and see [`Team`].
    #[track_caller]
    pub fn start(&self, data: Vec<T>) -> Result<Request<'p, Vec<T>>> {
        if data.len() != self.len {
            return Err(Error::Lengths { source_len: data.len(), target_len: self.len });
        }
        (self.start)(data, Location::caller())
    }
}

impl<T> fmt::Debug for Planned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("len", &self.len).finish_non_exhaustive()
    }
}
