//! Nonblocking calls that are planned once and started many times: MPI's persistent collectives.

use std::{fmt, marker::PhantomData, panic::Location, sync::Arc};

use consort_fabric::{Collective, Pod, SyncModes};
use consort_native::Site;

use super::{Request, buffers::Pair, shape::Shape};
use crate::{
    Result, Team,
    collectives::{
        call::Call,
        combine::Combine,
        form::{KnowsLength, KnowsSource, KnowsTarget, Makes, Returns, Sealed, Separate},
        verb::{Verb, check_own},
    },
    error::CallError,
    runtime::plans::Ready,
};

/// Vectors that are given when a plan is started; from [`Team::plan`].
#[derive(Debug)]
pub struct PlannedData<'t, T> {
    team: &'t Team,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// # Nonblocking collectives that are planned once
impl Team {
    /// Plans barriers. See [`Team::start_barrier`]. Local.
    ///
    /// # Errors
    /// [`CallError::Plan`], [`CallError::Freed`].
    pub fn plan_barrier(&self) -> Result<PlannedBarrier> {
        let team = self.with_sync(SyncModes::STRICT);
        let verb = Verb::new(Collective::Barrier);
        let ready = team.nonblocking_plan::<u8>(&verb, &Shape::EMPTY, false, None)?;
        Ok(PlannedBarrier { team, ready })
    }

    /// Plans a nonblocking call that is started many times, by the collective that follows. `len` is
    /// the number of elements of each PE. In a scatter, an all-to-all and a reduce-scatter it is the
    /// length of a block. With counts, it is the length of the block that this PE contributes, or in
    /// a scatter receives. In an all-to-all with counts it is 0: the counts give all lengths.
    ///
    /// Local, and so is the plan. All PEs of the team create the same plans, and start them in one
    /// order with the team's other calls.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let sums = pe.world().plan::<f64>(3).all_reduce(Sum)?;
    ///     for step in 0..10 {
    ///         let sum = sums.start(vec![f64::from(step); 3])?;
    ///         assert_eq!(sum.wait()?[0], f64::from(2 * step));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn plan<T: Pod + Send>(&self, len: usize) -> Call<PlannedData<'_, T>> {
        Call(PlannedData { team: self, len, elements: PhantomData })
    }
}

impl<T: Pod + Send> PlannedData<'_, T> {
    fn make<B>(
        self,
        verb: Verb<'_>,
        combine: impl Combine<T> + Send + 'static,
        finish: fn(bool, Vec<T>) -> B,
    ) -> Result<Planned<T, B>> {
        let Self { team, len, .. } = self;
        let verb = Verb { len: Some(len), ..verb };
        let (shape, ready) = team.shape_and_plan::<T>(&verb, &combine, None, None)?;
        Ok(Planned { team: team.clone(), ready, combine: Arc::new(combine), shape, finish })
    }
}

impl<T> Returns for PlannedData<'_, T> {
    type All = Planned<T>;
    type Some = Planned<T, Option<Vec<T>>>;
}

impl<T: Pod + Send, C: Combine<T> + Send + 'static> Makes<C> for PlannedData<'_, T> {
    fn all(self, verb: Verb<'_>, combine: C, _: Site) -> Result<Self::All> {
        self.make(verb, combine, |_, result| result)
    }

    fn some(self, verb: Verb<'_>, combine: C, _: Site) -> Result<Self::Some> {
        self.make(verb, combine, bool::then_some)
    }
}

impl<T> Sealed for PlannedData<'_, T> {}
impl<T> Separate for PlannedData<'_, T> {}
impl<T> KnowsLength for PlannedData<'_, T> {}
impl<T> KnowsSource for PlannedData<'_, T> {}
impl<T> KnowsTarget for PlannedData<'_, T> {}

/// A planned nonblocking call on data of one length, from a collective after [`Team::plan`]. Its
/// algorithm was chosen when it was planned. `B` is the result type of its request.
///
/// ```
/// use consort::{Job, Rank};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let steps = world.plan::<u32>(100).broadcast(Rank(0))?;
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
pub struct Planned<T, B = Vec<T>> {
    team: Team,
    ready: Arc<dyn Ready>,
    combine: Arc<dyn Combine<T> + Send>,
    shape: Shape,
    /// Makes the result. The first argument is whether this PE gets one.
    finish: fn(bool, Vec<T>) -> B,
}

/// The buffers of a planned call.
type Owned<T> = Pair<T, Vec<T>, Vec<T>, Arc<dyn Combine<T> + Send>>;

impl<T: Pod + Send, B: Send + 'static> Planned<T, B> {
    /// Starts the call on `data`, which has the planned length, and allocates the result. `data` is
    /// ignored if this PE contributes nothing. A broadcast returns `data`. Collective.
    ///
    /// # Errors
    /// [`CallError::PlannedLength`], and see [`Team`].
    #[track_caller]
    pub fn start(&self, data: Vec<T>) -> Result<Request<B>> {
        let shape = &self.shape;
        ensure_planned(shape.uses[0] || shape.is_broadcast, data.len(), shape.source_len)?;
        let (source, target) = shape.place(data);
        let finish = self.finish;
        let finish = move |pair: Owned<T>, shape: &Shape| {
            finish(shape.is_among_some, shape.result(pair.source, pair.target))
        };
        self.begin(source, target, finish, Location::caller())
    }

    /// Starts the call from `source` into `target`, and returns both when it is complete: a program
    /// that keeps them allocates nothing for its data. Both have the planned lengths; one that this
    /// PE neither contributes nor receives is ignored. The root of a broadcast also writes its
    /// target, unless that is empty. In an exclusive scan, PE 0's target, whose content is
    /// unspecified, is as long as the others'. Collective.
    ///
    /// # Errors
    /// [`CallError::PlannedLength`]; [`CallError::Lengths`] if the target of a broadcast's root has
    /// another length than its source; and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let sums = pe.world().plan::<u64>(3).all_reduce(Sum)?;
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
    pub fn start_into(&self, source: Vec<T>, target: Vec<T>) -> Result<Request<(Vec<T>, Vec<T>)>> {
        let shape = &self.shape;
        ensure_planned(shape.uses[0], source.len(), shape.source_len)?;
        ensure_planned(shape.uses[1], target.len(), shape.target_len)?;
        if shape.is_broadcasting() {
            check_own(source.len(), target.len())?;
        }
        self.begin(source, target, Pair::into_both, Location::caller())
    }

    fn begin<R: Send + 'static>(
        &self,
        source: Vec<T>,
        target: Vec<T>,
        finish: impl FnOnce(Owned<T>, &Shape) -> R + Send + 'static,
        site: Site,
    ) -> Result<Request<R>> {
        let buffers = Pair::new(source, target, Arc::clone(&self.combine));
        self.team.start_owned(Arc::clone(&self.ready), self.shape.clone(), buffers, finish, site)
    }
}

/// Fails if a buffer is used and does not have its planned length.
fn ensure_planned(is_used: bool, given: usize, planned: usize) -> Result<()> {
    if is_used && given != planned {
        return Err(CallError::PlannedLength { given, planned }.into());
    }
    Ok(())
}

impl<T, B> fmt::Debug for Planned<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { source_len, target_len, .. } = self.shape;
        f.debug_struct("Planned")
            .field("source_len", &source_len)
            .field("target_len", &target_len)
            .finish_non_exhaustive()
    }
}

/// A planned barrier, from [`Team::plan_barrier`].
pub struct PlannedBarrier {
    team: Team,
    ready: Arc<dyn Ready>,
}

impl PlannedBarrier {
    /// Starts the barrier. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub fn start(&self) -> Result<Request<()>> {
        self.team.start_without_data(Arc::clone(&self.ready), Location::caller())
    }
}

impl fmt::Debug for PlannedBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedBarrier").finish_non_exhaustive()
    }
}
