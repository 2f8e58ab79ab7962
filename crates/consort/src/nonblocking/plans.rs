//! A team's planned calls.
//!
//! Each collective has one. Calls with equal blocks differ in their kind and in the results of
//! their requests; the vector variants take their displacements once.

use consort_fabric::{Collective, Operator, Pod, Rank, SyncModes};

use super::{
    Kind, Planned, PlannedBarrier,
    buffers::{Combine, Nothing, OwnedLayout, With},
    planned::{Finish, Shape, Side},
};
use crate::{Displacements, Result, Team};
#[cfg(doc)]
use crate::{Error, error::CallError};

// Results of the requests of planned calls.

/// Returns every PE's result.
fn all<T>(_: Side, _: Vec<T>, target: Vec<T>) -> Vec<T> {
    target
}

/// Returns the result of the root, which alone has one.
fn first<T>(side: Side, _: Vec<T>, target: Vec<T>) -> Option<Vec<T>> {
    (side == Side::First).then_some(target)
}

/// Returns the results of all PEs but PE 0, which has none.
fn others<T>(side: Side, _: Vec<T>, target: Vec<T>) -> Option<Vec<T>> {
    (side == Side::Other).then_some(target)
}

/// Returns a broadcast's data, which is the root's source.
fn data<T>(side: Side, source: Vec<T>, target: Vec<T>) -> Vec<T> {
    if side == Side::Receives { target } else { source }
}

/// # Nonblocking collectives that are planned once
///
/// Plans are local. All PEs of the team create the same ones, and start them in one order with the
/// team's other calls.
impl<'p> Team<'p> {
    /// Plans barriers. See [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_barrier(&self) -> Result<PlannedBarrier<'p>> {
        let team = self.with_sync(SyncModes::STRICT);
        let kind = Kind::of(Collective::Barrier, None, 0);
        let barrier = team.planned_blocks(kind, Nothing, |_, _: Vec<u8>, _| ())?;
        Ok(PlannedBarrier { barrier })
    }

    /// Plans broadcasts of `len` elements from the root. See [`Team::start_broadcast`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_broadcast<T: Pod + Send>(&self, len: usize, root: Rank) -> Result<Planned<'p, T>> {
        let kind = Kind::of(Collective::Broadcast, Some(root), len);
        self.planned(kind, Nothing, Shape::of_broadcast(self, len, root), data)
    }

    /// Plans scatters of blocks of `len` elements. PEs other than the root start them on any data.
    /// See [`Team::start_scatter`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::Plan`],
    /// [`CallError::Freed`].
    pub fn plan_scatter<T: Pod + Send>(&self, len: usize, root: Rank) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::Scatter, Some(root), len), Nothing, all)
    }

    /// Plans gathers of `len` elements of each PE. The root gets the result, and the others `None`.
    /// See [`Team::start_gather`].
    ///
    /// # Errors
    /// As [`Team::plan_scatter`].
    pub fn plan_gather<T: Pod + Send>(
        &self,
        len: usize,
        root: Rank,
    ) -> Result<Planned<'p, T, Option<Vec<T>>>> {
        self.planned_blocks(Kind::of(Collective::Gather, Some(root), len), Nothing, first)
    }

    /// Plans all-gathers of `len` elements of each PE. See [`Team::start_all_gather`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_all_gather<T: Pod + Send>(&self, len: usize) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::AllGather, None, len), Nothing, all)
    }

    /// Plans all-to-alls of blocks of `len` elements. See [`Team::start_all_to_all`].
    ///
    /// # Errors
    /// As [`Team::plan_all_gather`].
    pub fn plan_all_to_all<T: Pod + Send>(&self, len: usize) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::AllToAll, None, len), Nothing, all)
    }

    /// Plans reductions of `len` elements. The root gets the result, and the others `None`. See
    /// [`Team::start_reduce`].
    ///
    /// # Errors
    /// As [`Team::plan_broadcast`].
    pub fn plan_reduce<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        len: usize,
        operator: O,
        root: Rank,
    ) -> Result<Planned<'p, T, Option<Vec<T>>>> {
        self.planned_blocks(Kind::of(Collective::Reduce, Some(root), len), With(operator), first)
    }

    /// Plans all-reduces of `len` elements. See [`Team::start_all_reduce`].
    ///
    /// # Errors
    /// [`CallError::Plan`], [`CallError::Freed`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let sums = pe.world().plan_all_reduce::<f64, _>(3, Sum)?;
    ///     for step in 0..10 {
    ///         let sum = sums.start(vec![f64::from(step); 3])?;
    ///         assert_eq!(sum.wait()?[0], f64::from(2 * step));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn plan_all_reduce<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        len: usize,
        operator: O,
    ) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::AllReduce, None, len), With(operator), all)
    }

    /// Plans reduce-scatters of blocks of `len` elements. See [`Team::start_reduce_scatter`].
    ///
    /// # Errors
    /// As [`Team::plan_all_gather`].
    pub fn plan_reduce_scatter<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        len: usize,
        operator: O,
    ) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::ReduceScatter, None, len), With(operator), all)
    }

    /// Plans scans of `len` elements. See [`Team::start_scan`].
    ///
    /// # Errors
    /// As [`Team::plan_all_reduce`].
    pub fn plan_scan<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        len: usize,
        operator: O,
    ) -> Result<Planned<'p, T>> {
        self.planned_blocks(Kind::of(Collective::Scan, None, len), With(operator), all)
    }

    /// Plans exclusive scans of `len` elements. PE 0 gets `None`. See
    /// [`Team::start_exclusive_scan`].
    ///
    /// # Errors
    /// As [`Team::plan_all_reduce`].
    pub fn plan_exclusive_scan<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        len: usize,
        operator: O,
    ) -> Result<Planned<'p, T, Option<Vec<T>>>> {
        self.planned_blocks(Kind::of(Collective::ExclusiveScan, None, len), With(operator), others)
    }

    /// Plans vector scatters of the root's `blocks`; this PE's block has `len` elements. The root
    /// starts them on data of [`Displacements::extent`] elements, and the others on any. See
    /// [`Team::start_scatter_vector`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root,
    /// [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_scatter_vector<T: Pod + Send>(
        &self,
        blocks: Displacements,
        len: usize,
        root: Rank,
    ) -> Result<Planned<'p, T>> {
        let is_root = self.rank() == root;
        let source = if is_root { self.read::<T>(blocks)? } else { (None, nothing::<T>()) };
        let shape = Shape::of_vector(is_root, source, (len, OwnedLayout::one::<T>(len)));
        self.planned(Kind::of(Collective::ScatterVector, Some(root), 0), Nothing, shape, all)
    }

    /// Plans vector gathers of `len` elements of this PE into the root's `blocks`. The root gets
    /// the result, and the others `None`. See [`Team::start_gather_vector`].
    ///
    /// # Errors
    /// As [`Team::plan_scatter_vector`].
    pub fn plan_gather_vector<T: Pod + Send>(
        &self,
        len: usize,
        blocks: Displacements,
        root: Rank,
    ) -> Result<Planned<'p, T, Option<Vec<T>>>> {
        let is_root = self.rank() == root;
        let target = if is_root { self.written::<T>(blocks)? } else { (0, nothing::<T>()) };
        let shape = Shape::of_vector(is_root, (Some(len), OwnedLayout::one::<T>(len)), target);
        self.planned(Kind::of(Collective::GatherVector, Some(root), 0), Nothing, shape, first)
    }

    /// Plans vector all-gathers of `len` elements of this PE into `blocks`. See
    /// [`Team::start_all_gather_vector`].
    ///
    /// # Errors
    /// [`CallError::Displacements`], [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_all_gather_vector<T: Pod + Send>(
        &self,
        len: usize,
        blocks: Displacements,
    ) -> Result<Planned<'p, T>> {
        let source = (Some(len), OwnedLayout::one::<T>(len));
        let shape = Shape::of_vector(false, source, self.written::<T>(blocks)?);
        self.planned(Kind::of(Collective::AllGatherVector, None, 0), Nothing, shape, all)
    }

    /// Plans vector all-to-alls of the blocks `given` into the blocks `received`. They are started
    /// on data of [`Displacements::extent`] elements. See [`Team::start_all_to_all_vector`].
    ///
    /// # Errors
    /// As [`Team::plan_all_gather_vector`].
    pub fn plan_all_to_all_vector<T: Pod + Send>(
        &self,
        given: Displacements,
        received: Displacements,
    ) -> Result<Planned<'p, T>> {
        let (source, target) = (self.read::<T>(given)?, self.written::<T>(received)?);
        let shape = Shape::of_vector(false, source, target);
        self.planned(Kind::of(Collective::AllToAllVector, None, 0), Nothing, shape, all)
    }

    /// Plans a call with blocks of equal length.
    fn planned_blocks<T: Pod, B>(
        &self,
        kind: Kind,
        combine: impl Combine<T> + Sync + 'static,
        finish: Finish<T, B>,
    ) -> Result<Planned<'p, T, B>> {
        self.planned(kind, combine, Shape::of_blocks::<T>(self, kind)?, finish)
    }

    /// Returns the blocks that this PE contributes.
    fn read<T: Pod>(&self, blocks: Displacements) -> Result<(Option<usize>, OwnedLayout)> {
        let extent = blocks.extent();
        blocks.check_source(self.pes(), extent)?;
        Ok((Some(extent), OwnedLayout::each::<T>(blocks)))
    }

    /// Returns the blocks that this PE receives.
    fn written<T: Pod>(&self, blocks: Displacements) -> Result<(usize, OwnedLayout)> {
        let extent = blocks.extent();
        blocks.check_target(self.pes(), extent)?;
        Ok((extent, OwnedLayout::each::<T>(blocks)))
    }
}

/// Returns the layout without blocks.
fn nothing<T: Pod>() -> OwnedLayout {
    OwnedLayout::one::<T>(0)
}
