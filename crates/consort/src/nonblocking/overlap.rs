//! Nonblocking collectives on borrowed data, within a scope that ends when all of them have.
//!
//! The operations access data that the caller has borrowed for the scope. So the scope is not left,
//! whether by a return, an error or a panic, before its last operation has been dropped. The
//! closure gets the scope only as a borrow, so nobody can forget it. [`std::thread::scope`] works
//! in the same way.
//!
//! | the closure | the scope |
//! | --- | --- |
//! | returns | waits for its calls as a blocking call does |
//! | panics | fails the job, so that its calls end at once; then waits for them |
//!
//! The closure's result and the payloads of panics, in it or in operators of its calls, are values
//! of the program, and dropping them may panic. So all of them are kept until the last operation
//! has been dropped.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    thread,
};

use consort_fabric::{Collective, Operator, Pod, Rank};
use consort_native::{Buffer, Job, Operands, Panic, Tally, discard};

use super::{
    Kind, Request,
    buffers::{Buffers, Combine, Nothing, With},
};
#[cfg(doc)]
use crate::Error;
use crate::{Result, Team};

/// The borrowed buffers and the operator of a call.
struct Borrowed<'s, T, C> {
    source: &'s [T],
    target: &'s mut [T],
    combine: C,
}

impl<T: Pod + Send + std::marker::Sync, C: Combine<T>> Buffers for Borrowed<'_, T, C> {
    fn operands<'c>(&'c mut self, _: &'c Job) -> Operands<'c> {
        Operands {
            kernel: self.combine.combination().map(|(kernel, _)| kernel),
            source: Buffer::source(self.source),
            target: Buffer::target(self.target),
            layouts: None,
        }
    }
}

/// A scope for nonblocking calls on borrowed data; from [`Team::overlap`].
///
/// ```
/// use consort::{Pes, Sum};
///
/// Pes::threads(2).run(|pe| {
///     let world = pe.world();
///     let (own, mut sums) = ([world.rank().0; 100], [0; 100]);
///     let largest = world.overlap(|scope| {
///         let call = scope.start_all_reduce(&own, &mut sums, Sum)?;
///         let largest = own.iter().max(); // while the call goes on; it reads `own` as well
///         call.wait()?;
///         Ok(largest)
///     })?;
///     assert_eq!((largest, sums[99]), (Some(&world.rank().0), 1));
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Overlap<'scope, 'env: 'scope> {
    team: Team<'env>,
    operations: Tally,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// # Nonblocking collectives on borrowed slices
impl<'p> Team<'p> {
    /// Runs `body`, which may start calls on slices that it borrows until the end of the scope, and
    /// then waits until all these calls are complete. Local, but the calls that `body` starts are
    /// collective.
    ///
    /// It blocks, so do not use it in `async` code: use calls that own their data there.
    ///
    /// # Errors
    /// The error of `body`, else that of a call that failed; see [`Team`].
    ///
    /// # Panics
    /// When `body` or an operator of its calls panics, once no peer can access the borrowed data.
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// Pes::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let (mut one, mut other) = ([world.rank().0; 100], [world.rank().0; 100]);
    ///     world.overlap(|scope| {
    ///         scope.start_broadcast(&mut one, Rank(1))?;
    ///         scope.start_broadcast(&mut other, Rank(2))?.wait()
    ///     })?;
    ///     assert_eq!((one[0], other[0]), (1, 2));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn overlap<'env, R>(
        &self,
        body: impl for<'s> FnOnce(&'s Overlap<'s, 'env>) -> Result<R>,
    ) -> Result<R>
    where
        'p: 'env,
    {
        let (scope, env) = (PhantomData, PhantomData);
        let overlap = Overlap { team: *self, operations: Tally::default(), scope, env };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&overlap)));
        let (outcome, panics) = overlap.end(outcome);
        // All operations have been dropped, so nothing accesses the borrowed data, whatever panics.
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
    /// Waits until all operations have been dropped, and returns the payloads of their panics. It
    /// holds the outcome of the closure until then, and catches all panics.
    fn end<R>(&self, outcome: Result<R, Panic>) -> (Result<R, Panic>, Vec<Panic>) {
        let mut panics = Vec::new();
        while !self.operations.is_zero() {
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
        let endpoint = &self.team.state.endpoint;
        let _inside = self.team.state.go_inside();
        let number = endpoint.first_under_way().unwrap_or(0);
        if endpoint.block_until(number, None, || self.operations.is_zero().then_some(())).is_err() {
            // The job has failed: each operation ends at its next poll, here or on the helper.
            endpoint.progress();
            thread::yield_now();
        }
    }

    /// Starts a broadcast of the root's `data` into every PE's. See [`Team::start_broadcast`].
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_broadcast<T: Pod + Send + std::marker::Sync>(
        &'scope self,
        data: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, ()>> {
        let kind = Kind::of(Collective::Broadcast, Some(root), data.len());
        let (source, target): (&[T], &mut [T]) =
            if self.team.rank() == root { (data, &mut []) } else { (&[], data) };
        self.start(kind, Borrowed { source, target, combine: Nothing })
    }

    /// Starts a reduction to the root's `target`. Other PEs' `target` is not touched. See
    /// [`Team::start_reduce`].
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`] on the root, [`Error::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    #[track_caller]
    pub fn start_reduce<T: Pod + Send + std::marker::Sync, O: Operator<T> + Send + 'scope>(
        &'scope self,
        source: &'scope [T],
        target: &'scope mut [T],
        operator: O,
        root: Rank,
    ) -> Result<Request<'scope, ()>> {
        let kind = Kind::of(Collective::Reduce, Some(root), source.len());
        self.start(kind, Borrowed { source, target, combine: With(operator) })
    }

    /// Starts a reduction to every PE's `target`. See [`Team::start_all_reduce`].
    ///
    /// # Errors
    /// [`Error::Blocks`], [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_all_reduce<T: Pod + Send + std::marker::Sync, O: Operator<T> + Send + 'scope>(
        &'scope self,
        source: &'scope [T],
        target: &'scope mut [T],
        operator: O,
    ) -> Result<Request<'scope, ()>> {
        let kind = Kind::of(Collective::AllReduce, None, source.len());
        self.start(kind, Borrowed { source, target, combine: With(operator) })
    }

    /// Starts any collective but a barrier, on blocks of `len` elements. See
    /// [`Team::collective_slice`].
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`], [`Error::BorrowedSlice`] with exit mode None,
    /// and see [`Team`].
    #[track_caller]
    pub fn start_collective<T: Pod + Send + std::marker::Sync, O: Operator<T> + Send + 'scope>(
        &'scope self,
        collective: Collective,
        len: usize,
        (source, target): (&'scope [T], &'scope mut [T]),
        operator: O,
        root: Rank,
    ) -> Result<Request<'scope, ()>> {
        let kind = Kind::of(collective, collective.is_rooted().then_some(root), len);
        if collective.combines() {
            self.start(kind, Borrowed { source, target, combine: With(operator) })
        } else {
            self.start(kind, Borrowed { source, target, combine: Nothing })
        }
    }

    #[track_caller]
    fn start<T: Pod + Send + std::marker::Sync, C: Combine<T> + 'scope>(
        &'scope self,
        kind: Kind,
        buffers: Borrowed<'scope, T, C>,
    ) -> Result<Request<'scope, ()>> {
        let team: Team<'scope> = self.team;
        team.refuse_borrowed()?;
        let (contributed, received) =
            team.check_blocks(kind, buffers.source.len(), buffers.target.len())?;
        let Borrowed { source, target, combine } = buffers;
        let (ready, layouts) = (team.nonblocking_plan::<T>(kind, &combine)?, team.even::<T>(kind));
        let buffers = Borrowed {
            source: if contributed > 0 { source } else { &[] },
            target: if received > 0 { target } else { &mut [] },
            combine,
        };
        // SAFETY: all that the buffers borrow lives until the end of the scope, which waits until
        // its operations have been dropped; see `Team::overlap`.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            team.launch(ready, buffers, layouts, |_| (), Some(&self.operations), Location::caller())
        }
    }
}

impl fmt::Debug for Overlap<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlap").field("operations", &self.operations).finish_non_exhaustive()
    }
}
