//! Nonblocking collectives on borrowed data. They run within a scope, which ends when all of them
//! have ended.
//!
//! The operations access data that the caller has borrowed for the scope. So the scope does not
//! end, by a return, an error or a panic, before its last operation has been dropped. The closure
//! only borrows the scope, so the closure cannot prevent that by `mem::forget`.
//! [`std::thread::scope`] works in the same way.
//!
//! | the closure | the scope |
//! | --- | --- |
//! | returns | waits for its calls as a blocking call does |
//! | panics | fails the job, so that its calls end at once; then waits for them |
//!
//! A request returns its borrows when its call is complete on this PE, at the point where a
//! blocking call would return: the operation first drops its view of the call, and then passes the
//! borrows to the request. The borrows of a dropped request or a failed call are not returned
//! before the scope ends.
//!
//! The closure's result, and the payloads of panics in the closure or in operators of its calls,
//! are values of the program. Dropping them may panic, so all of them are kept until the last
//! operation has been dropped.

use std::{
    cell::RefCell,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
};

#[cfg(doc)]
use consort_fabric::Rank;
use consort_fabric::{Collective, Pod};
use consort_machine::{Panic, discard};
use consort_native::{Site, Tally};

use super::{
    Request,
    buffers::Pair,
    shape::Shape,
    source::{Elements, Source},
};
use crate::{
    Result, Team,
    collectives::{
        call::Call,
        combine::{Combine, Nothing},
        form::{KnowsLength, KnowsSource, KnowsTarget, Makes, Returns, Sealed, Separate},
        verb::{Verb, contribution_in_place},
    },
    runtime::plans::Ready,
};

/// A source and a slice to write, borrowed for a scope; from [`Overlap::start_into`]. The request
/// returns both.
#[derive(Debug)]
pub struct Borrowed<'scope, 'env, T, S> {
    scope: &'scope Overlap<'scope, 'env>,
    source: S,
    target: &'scope mut [T],
}

/// A slice to read and write, borrowed for a scope; from [`Overlap::start_in_place`]. The request
/// returns it.
#[derive(Debug)]
pub struct BorrowedInPlace<'scope, 'env, T> {
    scope: &'scope Overlap<'scope, 'env>,
    data: &'scope mut [T],
}

/// A scope for nonblocking calls on borrowed data; from [`Team::overlap`].
///
/// A call holds its borrows until the scope ends, but its request returns them when the call is
/// complete. A source borrowed as `&` may be read meanwhile; a source borrowed as `&mut` comes back
/// to be filled again:
///
/// ```
/// use consort::{Job, ops::Sum};
///
/// Job::threads(2).run(|pe| {
///     let (mut own, mut sums) = ([1; 100], [0; 100]);
///     pe.world().overlap(|scope| {
///         let call = scope.start_into(&mut own, &mut sums).all_reduce(Sum)?;
///         let (own, sums) = call.wait()?;
///         assert_eq!(sums[99], 2);
///         own.fill(2);
///         let (_, sums) = scope.start_into(own, sums).all_reduce(Sum)?.wait()?;
///         assert_eq!(sums[99], 4);
///         Ok(())
///     })
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Until the request returns a slice, nothing else can access it. With one more line, this does not
/// compile:
///
/// ```compile_fail,E0499
/// use consort::{Job, ops::Sum};
///
/// Job::threads(2).run(|pe| {
///     let (mut own, mut sums) = ([1; 100], [0; 100]);
///     pe.world().overlap(|scope| {
///         let call = scope.start_into(&mut own, &mut sums).all_reduce(Sum)?;
///         own.fill(3);
///         let (own, sums) = call.wait()?;
///         assert_eq!(sums[99], 2);
///         own.fill(2);
///         let (_, sums) = scope.start_into(own, sums).all_reduce(Sum)?.wait()?;
///         assert_eq!(sums[99], 4);
///         Ok(())
///     })
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Overlap<'scope, 'env: 'scope> {
    team: Team,
    operations: Tally,
    /// The teams of the scope's messages.
    messages: RefCell<Vec<Team>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// # Nonblocking collectives on borrowed slices
impl Team {
    /// Runs `body`, which may start calls on slices that it borrows for the scope, and then waits
    /// until all these calls are complete. Local, but the calls that `body` starts are collective.
    ///
    /// It blocks, so in `async` code use calls that own their data instead.
    ///
    /// # Errors
    /// The error of `body`, or else that of a failed call; see [`Team`].
    ///
    /// # Panics
    /// When `body` or an operator of its calls panics, once no peer can access the borrowed data.
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let (mut one, mut other) = ([world.rank().0; 100], [world.rank().0; 100]);
    ///     world.overlap(|scope| {
    ///         scope.start_in_place(&mut one).broadcast(Rank(1))?;
    ///         let other = scope.start_in_place(&mut other).broadcast(Rank(2))?.wait()?;
    ///         assert_eq!(other[0], 2);
    ///         Ok(())
    ///     })?;
    ///     assert_eq!((one[0], other[0]), (1, 2));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn overlap<'env, R>(
        &self,
        body: impl for<'s> FnOnce(&'s Overlap<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let (scope, env) = (PhantomData, PhantomData);
        let (operations, messages) = (Tally::default(), RefCell::default());
        let overlap = Overlap { team: self.clone(), operations, messages, scope, env };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&overlap)));
        let (outcome, panics) = overlap.end(outcome);
        // All operations have been dropped, so nothing accesses the borrowed data, even on a panic.
        match outcome {
            Err(panic) => {
                panics.into_iter().for_each(discard);
                resume_unwind(panic)
            }
            Ok(result) => {
                let mut panics = panics.into_iter();
                let Some(panic) = panics.next() else {
                    let sound = self.state.ensure_sound();
                    return result.and_then(|result| sound.map(|()| result));
                };
                discard(result);
                panics.for_each(discard);
                resume_unwind(panic)
            }
        }
    }
}

impl<'scope, 'env> Overlap<'scope, 'env> {
    /// Returns the team of the scope.
    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    /// Waits until all operations have been dropped, and returns the closure's outcome and the
    /// payloads of their panics. Catches all panics.
    fn end<R>(&self, outcome: Result<R, Panic>) -> (Result<R, Panic>, Vec<Panic>) {
        let mut panics = Vec::new();
        let engine = self.team.state.endpoint.engine();
        // In a forked child, the operations of the parent's helper are lost: nothing uses them.
        while !self.operations.is_zero() && !engine.is_lost() {
            if let Some(panic) = outcome.as_ref().err().or(panics.first()) {
                let endpoint = &self.team.state.endpoint;
                endpoint.job().fail(endpoint.rank_in_world(), panic);
            }
            panics.extend(catch_unwind(AssertUnwindSafe(|| self.drain())).err());
        }
        (outcome, panics)
    }

    /// Drives operations until all have been dropped, or the job has failed.
    fn drain(&self) {
        let _inside = self.team.state.go_inside();
        let messages = self.messages.borrow();
        let mut teams = std::iter::once(&self.team).chain(messages.iter());
        let waits_in = teams.find_map(|team| Some((team, team.state.endpoint.first_under_way()?)));
        let (team, number) = waits_in.unwrap_or((&self.team, 0));
        let endpoint = &team.state.endpoint;
        // The PE waits until this call is complete, and then for another one, if any.
        let is_over = || {
            let is_next = waits_in.is_some() && endpoint.first_under_way() != Some(number);
            (is_next || self.operations.is_zero()).then_some(())
        };
        if endpoint.block_until(number, None, is_over).is_err() {
            // The job has failed: each operation ends at its next poll, here or on the helper.
            endpoint.progress();
            thread::yield_now();
        }
    }

    /// Starts a message of `pair` by its plan. This PE sends the source, or else receives the
    /// target. Otherwise as [`Self::start`].
    pub(super) fn start_message<T, S, B>(
        &'scope self,
        (pair, ready): (Team, Arc<dyn Ready>),
        (source, target): (S, &'scope mut [T]),
        sends: bool,
        finish: impl FnOnce(S, &'scope mut [T]) -> B + Send + 'scope,
        site: Site,
    ) -> Result<Request<B>>
    where
        T: Pod + Send,
        S: Source<T> + 'scope,
        B: Send + 'scope,
    {
        let is_it = |known: &Team| known.state.number() == pair.state.number();
        if !self.messages.borrow().iter().any(is_it) {
            self.messages.borrow_mut().push(pair.clone());
        }
        let shape = Shape::using([sends, !sends]);
        let buffers = Pair::new(source, target, Nothing);
        let finish = |pair: Pair<T, S, _, _>, _: &Shape| finish(pair.source, pair.target);
        // SAFETY: all that the buffers borrow lives until the end of the scope, which waits until
        // its operations have been dropped; see `Team::overlap`.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            pair.launch(ready, shape, buffers, finish, Some(&self.operations), site)
        }
    }

    /// Names the data of a call from `source`, borrowed as `&` or `&mut`, into `target`. Its request
    /// returns both. A buffer that a PE neither contributes nor receives is not touched. The root of
    /// a broadcast also writes its target, unless that is empty. Local.
    pub fn start_into<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
    ) -> Call<Borrowed<'scope, 'env, T, S>> {
        Call(Borrowed { scope: self, source, target })
    }

    /// Names the data of a call that reads `data` and replaces it by the result. Its request
    /// returns `data`. All calls but a broadcast copy this PE's contribution. Local.
    pub fn start_in_place<T: Pod + Send>(
        &'scope self,
        data: &'scope mut [T],
    ) -> Call<BorrowedInPlace<'scope, 'env, T>> {
        Call(BorrowedInPlace { scope: self, data })
    }

    /// Starts a call, whose operation owns the borrows and passes them to `finish` at its end.
    fn start<T, S, C, B>(
        &'scope self,
        verb: &Verb<'_>,
        (source, target): (S, &'scope mut [T]),
        combine: C,
        finish: impl FnOnce((S, &'scope mut [T])) -> B + Send + 'scope,
        site: Site,
    ) -> Result<Request<B>>
    where
        T: Pod + Send,
        S: Elements<T> + Send + 'scope,
        C: Combine<T> + Send + 'scope,
        B: Send + 'scope,
    {
        let team = &self.team;
        team.refuse_borrowed()?;
        let lens = (Some(source.elements().len()), Some(target.len()));
        let (shape, ready) = team.shape_and_plan::<T>(verb, &combine, lens.0, lens.1)?;
        let buffers = Pair::new(source, target, combine);
        let finish = |pair: Pair<T, S, _, C>, shape: &Shape| finish(pair.into_both(shape));
        // SAFETY: all that the buffers borrow lives until the end of the scope, which waits until
        // its operations have been dropped; see `Team::overlap`.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            team.launch(ready, shape, buffers, finish, Some(&self.operations), site)
        }
    }
}

impl<'scope, T, S> Returns for Borrowed<'scope, '_, T, S> {
    type All = Request<(S, &'scope mut [T])>;
    type Some = Self::All;
}

impl<'scope, T, S, C> Makes<C> for Borrowed<'scope, '_, T, S>
where
    T: Pod + Send,
    S: Source<T> + 'scope,
    C: Combine<T> + Send + 'scope,
{
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::All> {
        self.scope.start(&verb, (self.source, self.target), combine, |both| both, site)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::Some> {
        self.all(verb, combine, site)
    }
}

impl<T, S> Sealed for Borrowed<'_, '_, T, S> {}
impl<T, S> Separate for Borrowed<'_, '_, T, S> {}
impl<T, S> KnowsLength for Borrowed<'_, '_, T, S> {}
impl<T, S> KnowsSource for Borrowed<'_, '_, T, S> {}
impl<T, S> KnowsTarget for Borrowed<'_, '_, T, S> {}

impl<T> Sealed for BorrowedInPlace<'_, '_, T> {}

impl<'scope, T> Returns for BorrowedInPlace<'scope, '_, T> {
    type All = Request<&'scope mut [T]>;
    type Some = Self::All;
}

impl<'scope, T, C> Makes<C> for BorrowedInPlace<'scope, '_, T>
where
    T: Pod + Send,
    C: Combine<T> + Send + 'scope,
{
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::All> {
        let Self { scope, data } = self;
        let team = &scope.team;
        team.refuse_borrowed()?;
        if verb.collective == Collective::Broadcast {
            let none = <&mut [T]>::default();
            return if verb.is_root(team) {
                scope.start(&verb, (data, none), combine, |(data, _)| data, site)
            } else {
                scope.start(&verb, (none, data), combine, |(_, data)| data, site)
            };
        }
        // Peers may read a PE's contribution while theirs are written to its data.
        let source = contribution_in_place(&verb, team, data);
        scope.start(&verb, (source, data), combine, |(_, data)| data, site)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::Some> {
        self.all(verb, combine, site)
    }
}

impl fmt::Debug for Overlap<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlap").field("operations", &self.operations).finish_non_exhaustive()
    }
}
