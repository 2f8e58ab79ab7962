//! A team's nonblocking collectives, on vectors that the calls own, and in symmetric memory.

use std::{marker::PhantomData, sync::Arc};

use consort_fabric::{CallSpec, Pod};
use consort_native::Site;

use super::{
    Request,
    buffers::{InHeap, Pair, Place},
    shape::{OwnedLayout, Shape},
};
#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team,
    collectives::{
        call::Call,
        combine::{Combine, Nothing},
        form::{
            KnowsLength, KnowsSource, KnowsTarget, Makes, Returns, Sealed, Separate, TakesLength,
        },
        verb::{Verb, layouts},
    },
    runtime::plans::Ready,
    symmetric::element::Element,
};

/// A vector to read; from [`Team::start`]. The request returns a new vector; for a broadcast, this one.
#[derive(Debug)]
pub struct Start<'t, T> {
    team: &'t Team,
    source: Vec<T>,
}

/// A vector to read and one to write; from [`Team::start_into`]. The request returns both.
#[derive(Debug)]
pub struct StartInto<'t, T> {
    team: &'t Team,
    source: Vec<T>,
    target: Vec<T>,
}

/// Symmetric memory of a nonblocking call; from [`Team::start_symmetric`].
#[derive(Debug)]
pub struct StartSymmetric<'a, T: Element> {
    team: &'a Team,
    source: &'a Symmetric<T>,
    target: &'a Symmetric<T>,
}

/// # Nonblocking collectives
impl Team {
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
    pub fn start_barrier(&self) -> Result<Request<()>> {
        self.plan_barrier()?.start()
    }

    /// Names the data of a nonblocking call, which owns `source` and allocates its result. A
    /// broadcast returns `source`, with the root's data in it. See [`Team::start_barrier`]. Local.
    ///
    /// ```
    /// # use consort::{Job, Rank, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let sums = world.start(vec![1, 2, 3]).all_reduce(Sum)?;
    ///     let all = world.start(vec![world.rank().0; 2]).gather(Rank(0))?;
    ///     // ... work that needs neither ...
    ///     assert_eq!(sums.wait()?, [2, 4, 6]);
    ///     let is_root = world.rank() == Rank(0);
    ///     assert_eq!(all.wait()?, is_root.then(|| vec![0, 0, 1, 1]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn start<T: Pod + Send>(&self, source: Vec<T>) -> Call<Start<'_, T>> {
        Call(Start { team: self, source })
    }

    /// Names the data of a nonblocking call from `source` into `target`. It returns both when it is
    /// complete: a program that keeps them allocates nothing for its data. A vector that this PE
    /// neither contributes nor receives is ignored. The root of a broadcast also writes its target,
    /// unless that is empty. See [`Team::start_barrier`]. Local.
    ///
    /// ```
    /// # use consort::Job;
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (mut source, mut target) = (vec![0; 2], vec![0; 2]);
    ///     for step in 1..=5 {
    ///         source.fill(step * (world.rank().0 + 1)); // the vector that came back
    ///         let exchanged = world.start_into(source, target).all_to_all()?;
    ///         // ... work that needs neither ...
    ///         (source, target) = exchanged.wait()?;
    ///         assert_eq!(target, [step, 2 * step]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn start_into<T: Pod + Send>(
        &self,
        source: Vec<T>,
        target: Vec<T>,
    ) -> Call<StartInto<'_, T>> {
        Call(StartInto { team: self, source, target })
    }

    /// Names the data of a nonblocking call in symmetric memory. The program must not change that
    /// memory until the call is complete. In a broadcast, both are the same memory. See
    /// [`Team::start_barrier`]. Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (own, sums) = (world.symmetric::<u64>(8)?, world.symmetric::<u64>(8)?);
    ///     own.fill(2)?;
    ///     let call = world.start_symmetric(&own, &sums).all_reduce(Sum)?;
    ///     call.wait()?;
    ///     assert_eq!(sums.load(7)?, 4);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn start_symmetric<'a, T: Element>(
        &'a self,
        source: &'a Symmetric<T>,
        target: &'a Symmetric<T>,
    ) -> Call<StartSymmetric<'a, T>> {
        Call(StartSymmetric { team: self, source, target })
    }

    /// Starts a barrier of this name at `site`.
    pub(crate) fn start_named_barrier(&self, name: &str, site: Site) -> Result<Request<()>> {
        let call = CallSpec { nonblocking: true, ..CallSpec::barrier(self.pes()) };
        self.start_without_data(self.state.prepare_named(&call, name)?, site)
    }

    /// Starts a call without data.
    pub(super) fn start_without_data(
        &self,
        ready: Arc<dyn Ready>,
        site: Site,
    ) -> Result<Request<()>> {
        let nothing = Pair::<u8, _, _, _>::new(Vec::new(), Vec::new(), Nothing);
        self.start_owned(ready, Shape::EMPTY, nothing, |_, _| (), site)
    }

    /// Starts a call in symmetric memory, on blocks of `len` elements or on those of `layouts`.
    #[expect(clippy::too_many_arguments, reason = "all that a call has")]
    pub(crate) fn start_in<P: Place + 'static, T: Pod, C: Combine<T> + Send + 'static>(
        &self,
        verb: &Verb<'_>,
        len: usize,
        symmetric: bool,
        (source, target): (P, P),
        combine: C,
        layouts: Option<[OwnedLayout; 2]>,
        site: Site,
    ) -> Result<Request<()>> {
        let shape = Shape::new(self, verb, &combine, len, layouts);
        let ready = self.nonblocking_plan::<T>(verb, &shape, symmetric, combine.combination())?;
        let buffers = InHeap {
            rank_in_world: self.state.endpoint.rank_in_world(),
            source,
            target,
            combine,
            elements: PhantomData::<fn() -> T>,
        };
        // SAFETY: the operation owns everything that it uses.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            self.launch(ready, shape, buffers, |_, _| (), None, site)
        }
    }

    /// Starts a call on vectors that its operation owns, and passes to `finish` at its end.
    pub(crate) fn start_owned<T: Pod + Send, C: Combine<T> + Send + 'static, B: Send + 'static>(
        &self,
        ready: Arc<dyn Ready>,
        shape: Shape,
        buffers: Pair<T, Vec<T>, Vec<T>, C>,
        finish: impl FnOnce(Pair<T, Vec<T>, Vec<T>, C>, &Shape) -> B + Send + 'static,
        site: Site,
    ) -> Result<Request<B>> {
        // SAFETY: the operation owns everything that it uses.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            self.launch(ready, shape, buffers, finish, None, site)
        }
    }
}

impl<T: Pod + Send> Start<'_, T> {
    fn make<C: Combine<T> + Send + 'static, B: Send + 'static>(
        self,
        verb: &Verb<'_>,
        combine: C,
        site: Site,
        finish: impl FnOnce(bool, Vec<T>) -> B + Send + 'static,
    ) -> Result<Request<B>> {
        let Self { team, source } = self;
        let (shape, ready) = team.shape_and_plan::<T>(verb, &combine, Some(source.len()), None)?;
        let (source, target) = shape.place(source);
        let buffers = Pair::new(source, target, combine);
        let finish = |Pair { source, target, .. }: Pair<_, _, _, _>, shape: &Shape| {
            finish(shape.is_among_some, shape.result(source, target))
        };
        team.start_owned(ready, shape, buffers, finish, site)
    }
}

impl<T> Returns for Start<'_, T> {
    type All = Request<Vec<T>>;
    type Some = Request<Option<Vec<T>>>;
}

impl<T: Pod + Send, C: Combine<T> + Send + 'static> Makes<C> for Start<'_, T> {
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Request<Vec<T>>> {
        self.make(&verb, combine, site, |_, result| result)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Request<Option<Vec<T>>>> {
        self.make(&verb, combine, site, bool::then_some)
    }
}

impl<T> Sealed for Start<'_, T> {}
impl<T> Separate for Start<'_, T> {}
impl<T> TakesLength for Start<'_, T> {}
impl<T> KnowsSource for Start<'_, T> {}

impl<T> Returns for StartInto<'_, T> {
    type All = Request<(Vec<T>, Vec<T>)>;
    type Some = Self::All;
}

impl<T: Pod + Send, C: Combine<T> + Send + 'static> Makes<C> for StartInto<'_, T> {
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::All> {
        let Self { team, source, target } = self;
        let lens = (Some(source.len()), Some(target.len()));
        let (shape, ready) = team.shape_and_plan::<T>(&verb, &combine, lens.0, lens.1)?;
        let buffers = Pair::new(source, target, combine);
        team.start_owned(ready, shape, buffers, Pair::into_both, site)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::Some> {
        self.all(verb, combine, site)
    }
}

impl<T> Sealed for StartInto<'_, T> {}
impl<T> Separate for StartInto<'_, T> {}
impl<T> KnowsLength for StartInto<'_, T> {}
impl<T> KnowsSource for StartInto<'_, T> {}
impl<T> KnowsTarget for StartInto<'_, T> {}

impl<T: Element> Returns for StartSymmetric<'_, T> {
    type All = Request<()>;
    type Some = Request<()>;
}

impl<T: Element, C: Combine<T> + Send + 'static> Makes<C> for StartSymmetric<'_, T> {
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Request<()>> {
        let Self { team, source, target } = self;
        source.check_with(target, verb.collective, &team.state)?;
        let lens = (source.len(), target.len());
        let held = verb.held(team, verb.len.unwrap_or(0))?;
        let (len, source_len, target_len, layouts) = match held {
            Some([given, received]) => {
                layouts::<T>(team, (lens.0, given), (lens.1, received))?;
                let layouts = [given, received].map(OwnedLayout::of::<T>);
                (0, lens.0, lens.1, Some(layouts))
            }
            None => {
                let (len, source_len, target_len) = verb.symmetric_lens(team, lens.0, lens.1)?;
                (len, source_len, target_len, None)
            }
        };
        let place =
            |memory: &Symmetric<T>, len: usize| (Arc::clone(memory.block()), len * size_of::<T>());
        let places = (place(source, source_len), place(target, target_len));
        team.start_in::<_, T, _>(&verb, len, true, places, combine, layouts, site)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Request<()>> {
        self.all(verb, combine, site)
    }
}

impl<T: Element> Sealed for StartSymmetric<'_, T> {}
impl<T: Element> Separate for StartSymmetric<'_, T> {}
impl<T: Element> TakesLength for StartSymmetric<'_, T> {}
impl<T: Element> KnowsLength for StartSymmetric<'_, T> {}
