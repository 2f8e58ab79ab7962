//! A team's nonblocking collectives on data that they own, and in symmetric memory.

use std::{panic::Location, sync::Arc};

use consort_fabric::{CallSpec, Collective, Operator, Pod, Rank, SyncModes};
use consort_native::Site;

use super::{
    Kind, Request,
    buffers::{Combine, Nothing, Owned, OwnedLayout, With},
};
#[cfg(doc)]
use crate::Error;
use crate::{
    Result, Symmetric, Team, collectives::blank, error::CallError, runtime::plans::Ready,
    symmetric::element::Element,
};

/// # Nonblocking collectives
impl<'p> Team<'p> {
    /// Drives the pending nonblocking calls of this PE, of all its teams. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`], [`Error::Mismatched`], [`CallError::Reentrant`], [`CallError::Freed`].
    pub fn progress(&self) -> Result<()> {
        drop(self.state.enter_one_sided()?); // drives pending calls
        self.state.ensure_sound()
    }

    /// Starts a barrier, which is complete when all PEs of the team have started it, in any mode.
    ///
    /// Like all nonblocking calls, it counts as one of the team's calls, which all PEs start or
    /// make in one order. Other calls may be made and started while it is pending, and waited for
    /// in any order. Starting a call waits in two cases: when the window is full of pending calls
    /// (64, or 16 in teams of more than 64 PEs), until all PEs have completed the oldest ones; and
    /// when the PE's puts to another machine have not arrived yet. A PE has one message buffer, so
    /// algorithms that use it do not serve nonblocking calls.
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// Job::threads(3).run(|pe| {
    ///     let all_here = pe.world().start_barrier()?;
    ///     // ... work that does not need the others ...
    ///     all_here.wait()
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn start_barrier(&self) -> Result<Request<'p, ()>> {
        let kind = Kind::of(Collective::Barrier, None, 0);
        self.with_sync(SyncModes::STRICT).start_on::<u8, _, _>(kind, Vec::new(), Nothing, |_, _| ())
    }

    /// Starts a barrier of this name at `site`.
    pub(crate) fn start_named_barrier(&self, name: &str, site: Site) -> Result<Request<'p, ()>> {
        let call = CallSpec { nonblocking: true, ..CallSpec::barrier(self.pes()) };
        let ready = self.state.prepare_named(&call, name)?;
        let nothing = Owned::<u8, _> { source: Vec::new(), target: Vec::new(), combine: Nothing };
        self.start_by(ready, nothing, |_, _| (), site)
    }

    /// Starts to all-gather `value`, as [`Team::all_gather_named`].
    ///
    /// # Errors
    /// See [`Team`].
    #[doc(hidden)]
    #[track_caller]
    pub fn start_all_gather_named<T: Pod + Send>(
        &self,
        name: &str,
        value: T,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = (Collective::AllGather, SyncModes::MINE);
        let call = CallSpec { nonblocking: true, ..self.state.spec::<T, T>(kind, None, 1, None) };
        let ready = self.state.prepare_named(&call, name)?;
        let target = blank(self.size());
        let buffers = Owned { source: vec![value], target, combine: Nothing };
        self.start_by(ready, buffers, |_, target| target, Location::caller())
    }

    /// Starts a broadcast of the root's `data`. Other PEs pass `data` of the same length, whose
    /// content is ignored. See [`Team::broadcast_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let table = world.start_broadcast(vec![world.rank().0; 1000], Rank(2))?;
    ///     let others = world.all_reduce(1, consort::ops::Sum)?; // while the table is on its way
    ///     assert_eq!((others, table.wait()?[999]), (3, 2));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn start_broadcast<T: Pod + Send>(
        &self,
        data: Vec<T>,
        root: Rank,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::Broadcast, Some(root), data.len());
        let ready = self.nonblocking_plan::<T>(kind, &Nothing)?;
        let is_root = self.rank() == root;
        let (source, target) = if is_root { (data, Vec::new()) } else { (Vec::new(), data) };
        let finish = move |source, target| if is_root { source } else { target };
        let buffers = Owned { source, target, combine: Nothing };
        self.start_by(ready, buffers, finish, Location::caller())
    }

    /// Starts a reduction. The root gets the result, and the others `None`. See
    /// [`Team::reduce_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    #[track_caller]
    pub fn start_reduce<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        source: Vec<T>,
        operator: O,
        root: Rank,
    ) -> Result<Request<'p, Option<Vec<T>>>> {
        let is_root = self.rank() == root;
        let kind = Kind::of(Collective::Reduce, Some(root), source.len());
        let finish = move |_, target| is_root.then_some(target);
        self.start_on(kind, source, With(operator), finish)
    }

    /// Starts a reduction whose result every PE gets. See [`Team::all_reduce_slice`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start_all_reduce<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        source: Vec<T>,
        operator: O,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::AllReduce, None, source.len());
        self.start_on(kind, source, With(operator), |_, target| target)
    }

    /// Starts a scatter: PE `i` gets block `i` of the root's `source`, `len` elements. Other PEs'
    /// `source` is ignored. See [`Team::scatter_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`] on the root, and see [`Team`].
    #[track_caller]
    pub fn start_scatter<T: Pod + Send>(
        &self,
        source: Vec<T>,
        len: usize,
        root: Rank,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::Scatter, Some(root), len);
        self.start_on(kind, source, Nothing, |_, target| target)
    }

    /// Starts a gather. The root gets every PE's `source`, and the others `None`. See
    /// [`Team::gather_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    #[track_caller]
    pub fn start_gather<T: Pod + Send>(
        &self,
        source: Vec<T>,
        root: Rank,
    ) -> Result<Request<'p, Option<Vec<T>>>> {
        let is_root = self.rank() == root;
        let kind = Kind::of(Collective::Gather, Some(root), source.len());
        self.start_on(kind, source, Nothing, move |_, target| is_root.then_some(target))
    }

    /// Starts a gather whose result every PE gets. See [`Team::all_gather_slice`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start_all_gather<T: Pod + Send>(&self, source: Vec<T>) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::AllGather, None, source.len());
        self.start_on(kind, source, Nothing, |_, target| target)
    }

    /// Starts an all-to-all of `source`, which has one block for each PE, and allocates the result.
    /// See [`Team::all_to_all_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], and see [`Team`].
    #[track_caller]
    pub fn start_all_to_all<T: Pod + Send>(&self, source: Vec<T>) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::AllToAll, None, source.len() / self.size());
        self.start_on(kind, source, Nothing, |_, target| target)
    }

    /// Starts an all-to-all from `source` into `target`, and returns both when it is complete: a
    /// program that keeps them allocates nothing for its data. Both have one block for each PE, all
    /// of one length. See [`Team::all_to_all_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], and see [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (mut source, mut target) = (vec![0; 2], vec![0; 2]);
    ///     for step in 1..=5 {
    ///         source.fill(step * (world.rank().0 + 1)); // the vector that came back
    ///         let exchanged = world.start_all_to_all_into(source, target)?;
    ///         // ... work that needs neither ...
    ///         (source, target) = exchanged.wait()?;
    ///         assert_eq!(target, [step, 2 * step]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn start_all_to_all_into<T: Pod + Send>(
        &self,
        source: Vec<T>,
        target: Vec<T>,
    ) -> Result<Request<'p, (Vec<T>, Vec<T>)>> {
        let kind = Kind::of(Collective::AllToAll, None, source.len() / self.size());
        self.check_blocks(kind, source.len(), target.len())?;
        let buffers = Owned { source, target, combine: Nothing };
        self.start_checked(kind, buffers, |source, target| (source, target))
    }

    /// Starts a reduce-scatter of `source`, which has one block for each PE: PE `i` gets block `i`
    /// of the result. See [`Team::reduce_scatter_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], and see [`Team`].
    #[track_caller]
    pub fn start_reduce_scatter<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        source: Vec<T>,
        operator: O,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::ReduceScatter, None, source.len() / self.size());
        self.start_on(kind, source, With(operator), |_, target| target)
    }

    /// Starts a scan. See [`Team::scan_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start_scan<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        source: Vec<T>,
        operator: O,
    ) -> Result<Request<'p, Vec<T>>> {
        let kind = Kind::of(Collective::Scan, None, source.len());
        self.start_on(kind, source, With(operator), |_, target| target)
    }

    /// Starts an exclusive scan. PE 0 gets `None`. See [`Team::exclusive_scan_slice`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start_exclusive_scan<T: Pod + Send, O: Operator<T> + Send + 'static>(
        &self,
        source: Vec<T>,
        operator: O,
    ) -> Result<Request<'p, Option<Vec<T>>>> {
        let is_first = self.rank() == Rank(0);
        let kind = Kind::of(Collective::ExclusiveScan, None, source.len());
        self.start_on(kind, source, With(operator), move |_, target| (!is_first).then_some(target))
    }

    /// Starts any collective but a barrier in symmetric memory, which must not be changed until the
    /// call is complete. The operator is ignored if nothing is combined, and the root if the
    /// collective has none. A broadcast uses only `source`. See [`Team::collective_symmetric`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// Those of the blocking method that is named after the collective.
    #[track_caller]
    pub fn start_symmetric<T: Element, O: Operator<T> + Send + 'static>(
        &self,
        collective: Collective,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
        root: Rank,
    ) -> Result<Request<'p, ()>> {
        let is_broadcast = collective == Collective::Broadcast;
        if source.is(target) && !is_broadcast {
            return Err(crate::Error::Call(CallError::InPlace));
        }
        let root = collective.is_rooted().then_some(root);
        let blocks = collective.source_blocks(self.pes(), true) as usize;
        let len = source.len() / blocks.max(1);
        let kind = Kind { collective, root, len, symmetric: true };
        self.check_blocks(kind, source.len(), target.len())?;
        let target = if is_broadcast { source } else { target };
        let of = |memory: &Symmetric<T>| {
            memory.ensure_job(self.state.endpoint.job());
            Arc::clone(memory.block())
        };
        let (places, even) = ((of(source), of(target)), self.even::<T>(kind));
        if collective.combines() {
            self.start_in::<_, T, _>(kind, places, With(operator), even)
        } else {
            self.start_in::<_, T, _>(kind, places, Nothing, even)
        }
    }

    /// Starts a call on data that it owns, and allocates the target.
    #[track_caller]
    fn start_on<T: Pod + Send, C: Combine<T> + 'static, B: Send + 'static>(
        &self,
        kind: Kind,
        source: Vec<T>,
        combine: C,
        finish: impl FnOnce(Vec<T>, Vec<T>) -> B + Send + 'static,
    ) -> Result<Request<'p, B>> {
        let received = kind.collective.target_blocks(self.pes(), kind.root == Some(self.rank()));
        // A length that overflows does not match the blocks, and `check_blocks` reports that.
        let target_len = (received as usize).saturating_mul(kind.len);
        let (contributed, _) = self.check_blocks(kind, source.len(), target_len)?;
        let source = if contributed > 0 { source } else { Vec::new() };
        let buffers = Owned { source, target: blank(target_len), combine };
        self.start_checked(kind, buffers, finish)
    }

    /// Starts a call on data that it owns, whose lengths the caller has checked.
    #[track_caller]
    fn start_checked<T: Pod + Send, C: Combine<T> + 'static, B: Send + 'static>(
        &self,
        kind: Kind,
        buffers: Owned<T, C>,
        finish: impl FnOnce(Vec<T>, Vec<T>) -> B + Send + 'static,
    ) -> Result<Request<'p, B>> {
        let ready = self.nonblocking_plan::<T>(kind, &buffers.combine)?;
        self.start_with(ready, buffers, self.even::<T>(kind), finish, Location::caller())
    }

    fn start_by<T: Pod + Send, C: Combine<T> + 'static, B: Send + 'static>(
        &self,
        ready: Arc<dyn Ready>,
        buffers: Owned<T, C>,
        finish: impl FnOnce(Vec<T>, Vec<T>) -> B + Send + 'static,
        site: Site,
    ) -> Result<Request<'p, B>> {
        self.start_with(ready, buffers, None, finish, site)
    }

    pub(super) fn start_with<T: Pod + Send, C: Combine<T> + 'static, B: Send + 'static>(
        &self,
        ready: Arc<dyn Ready>,
        buffers: Owned<T, C>,
        layouts: Option<[OwnedLayout; 2]>,
        finish: impl FnOnce(Vec<T>, Vec<T>) -> B + Send + 'static,
        site: Site,
    ) -> Result<Request<'p, B>> {
        let finish = |buffers: Owned<T, C>| finish(buffers.source, buffers.target);
        // SAFETY: the operation owns everything that it uses.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            self.launch(ready, buffers, layouts, finish, None, site)
        }
    }
}
