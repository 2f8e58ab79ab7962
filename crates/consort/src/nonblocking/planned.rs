//! Nonblocking calls that are planned once and started many times: MPI's persistent collectives.

use std::{fmt, panic::Location, sync::Arc};

use consort_collectives::PlanError;
use consort_fabric::{Pod, Rank};
use consort_native::Site;

use super::{
    Kind, Request,
    buffers::{Combine, Owned, OwnedLayout},
};
#[cfg(doc)]
use crate::Displacements;
use crate::{Result, Team, collectives::blank, error::CallError, runtime::plans::Ready};

/// A planned nonblocking call on data of one length, from a method of [`Team`] such as
/// [`Team::plan_all_reduce`]. Its algorithm was chosen when it was planned. `B` is the result type
/// of its request.
///
/// ```
/// use consort::{Job, Rank};
///
/// Job::threads(3).run(|pe| {
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
pub struct Planned<'p, T, B = Vec<T>> {
    team: Team<'p>,
    ready: Arc<dyn Ready>,
    combine: Arc<dyn Combine<T> + Sync>,
    shape: Shape,
    finish: Finish<T, B>,
}

/// Creates the result from the source and the target, in this order.
pub(super) type Finish<T, B> = fn(Side, Vec<T>, Vec<T>) -> B;

/// The lengths and layouts of a PE's buffers in a planned call.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Elements of the source; `None` if it is ignored.
    source_len: Option<usize>,
    target_len: usize,
    side: Side,
    /// The layouts of a vector variant.
    layouts: Option<[OwnedLayout; 2]>,
}

/// The role of this PE in the collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The root; PE 0 in calls without a root whose blocks have equal length.
    First,
    /// Any PE but the first; each PE in vector variants without a root.
    Other,
    /// A PE that receives a broadcast; its data is its target.
    Receives,
}

impl Shape {
    /// Returns the shape of a call with blocks of equal length.
    pub(super) fn of_blocks<T: Pod>(team: &Team<'_>, kind: Kind) -> Result<Self> {
        let Kind { collective, root, len, .. } = kind;
        let is_first = team.rank() == root.unwrap_or(Rank(0));
        let (given, received) = (
            collective.source_blocks(team.pes(), root == Some(team.rank())),
            collective.target_blocks(team.pes(), root == Some(team.rank())),
        );
        let elements = |blocks: u32| (blocks as usize).saturating_mul(len);
        // Lengths that overflow do not match the blocks.
        team.check_blocks(kind, elements(given), elements(received))?;
        Ok(Self {
            source_len: (given > 0).then(|| elements(given)),
            target_len: elements(received),
            side: if is_first { Side::First } else { Side::Other },
            layouts: team.even::<T>(kind),
        })
    }

    /// Returns the shape of a broadcast, in which each PE has one buffer.
    pub(super) fn of_broadcast(team: &Team<'_>, len: usize, root: Rank) -> Self {
        let side = if team.rank() == root { Side::First } else { Side::Receives };
        Self { source_len: Some(len), target_len: 0, side, layouts: None }
    }

    /// Returns the shape of a vector variant.
    pub(super) fn of_vector(
        is_root: bool,
        (source_len, given): (Option<usize>, OwnedLayout),
        (target_len, received): (usize, OwnedLayout),
    ) -> Self {
        let side = if is_root { Side::First } else { Side::Other };
        Self { source_len, target_len, side, layouts: Some([given, received]) }
    }
}

impl<'p> Team<'p> {
    /// Plans a call of this shape.
    pub(super) fn planned<T: Pod, B>(
        &self,
        kind: Kind,
        combine: impl Combine<T> + Sync + 'static,
        shape: Shape,
        finish: Finish<T, B>,
    ) -> Result<Planned<'p, T, B>> {
        // A vector has at most `isize::MAX` bytes.
        let is_there = |len: usize| {
            len.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok())
        };
        if ![shape.source_len.unwrap_or(0), shape.target_len].into_iter().all(is_there) {
            let (algorithm, why) = (kind.collective.name(), "no memory holds its data".into());
            return Err(PlanError::Incapable { algorithm, why }.into());
        }
        let ready = self.nonblocking_plan::<T>(kind, &combine)?;
        Ok(Planned { team: *self, ready, combine: Arc::new(combine), shape, finish })
    }
}

impl<'p, T: Pod + Send, B: Send + 'static> Planned<'p, T, B> {
    /// Starts the call on `data`, which has the planned length, and allocates the result. `data` is
    /// ignored if this PE contributes nothing. Collective.
    ///
    /// # Errors
    /// [`CallError::PlannedLength`], and see [`Team`].
    #[track_caller]
    pub fn start(&self, data: Vec<T>) -> Result<Request<'p, B>> {
        let (finish, side) = (self.finish, self.shape.side);
        let target = blank(self.shape.target_len);
        self.begin(data, target, move |one, two| finish(side, one, two), Location::caller())
    }

    /// Starts the call from `source` into `target`, and returns both when it is complete: a program
    /// that keeps them allocates nothing for its data. Both have the planned lengths: an ignored
    /// source has any, a target that receives nothing has none, and a broadcast uses only `source`.
    /// In an exclusive scan, PE 0's target, whose content is unspecified, is as long as the
    /// others'. Collective.
    ///
    /// # Errors
    /// [`CallError::PlannedLength`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let sums = pe.world().plan_all_reduce::<u64, _>(3, Sum)?;
    ///     let (mut source, mut target) = (vec![0; 3], vec![0; 3]);
    ///     for step in 1..=10 {
    ///         source.fill(step);
    ///         (source, target) = sums.start_into(source, target)?.wait()?;
    ///         assert_eq!(target, [2 * step; 3]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn start_into(
        &self,
        source: Vec<T>,
        target: Vec<T>,
    ) -> Result<Request<'p, (Vec<T>, Vec<T>)>> {
        let target_len = self.shape.target_len;
        if target.len() != target_len {
            return Err(
                CallError::PlannedLength { given: target.len(), planned: target_len }.into()
            );
        }
        let (is_ignored, receives) =
            (self.shape.source_len.is_none(), self.shape.side == Side::Receives);
        let (source, aside) = if is_ignored { (Vec::new(), source) } else { (source, Vec::new()) };
        let in_order = move |one, two| match (is_ignored, receives) {
            (true, _) => (aside, two),
            (false, true) => (two, one),
            (false, false) => (one, two),
        };
        self.begin(source, target, in_order, Location::caller())
    }

    fn begin<R: Send + 'static>(
        &self,
        data: Vec<T>,
        target: Vec<T>,
        finish: impl FnOnce(Vec<T>, Vec<T>) -> R + Send + 'static,
        site: Site,
    ) -> Result<Request<'p, R>> {
        let Shape { source_len, side, layouts, .. } = &self.shape;
        if let Some(len) = source_len.filter(|&len| data.len() != len) {
            return Err(CallError::PlannedLength { given: data.len(), planned: len }.into());
        }
        let data = if source_len.is_some() { data } else { Vec::new() };
        let (source, target) =
            if *side == Side::Receives { (target, data) } else { (data, target) };
        let buffers = Owned { source, target, combine: Arc::clone(&self.combine) };
        self.team.start_with(Arc::clone(&self.ready), buffers, layouts.clone(), finish, site)
    }
}

impl<T, B> fmt::Debug for Planned<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { source_len, target_len, .. } = self.shape;
        f.debug_struct("Planned")
            .field("source_len", &source_len)
            .field("target_len", &target_len)
            .finish_non_exhaustive()
    }
}

/// A planned barrier, from [`Team::plan_barrier`].
pub struct PlannedBarrier<'p> {
    pub(super) barrier: Planned<'p, u8, ()>,
}

impl<'p> PlannedBarrier<'p> {
    /// Starts the barrier. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start(&self) -> Result<Request<'p, ()>> {
        self.barrier.start(Vec::new())
    }
}

impl fmt::Debug for PlannedBarrier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedBarrier").finish_non_exhaustive()
    }
}
