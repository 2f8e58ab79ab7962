//! A call whose data has been named, and its collectives.

use std::panic::Location;

use consort_fabric::{Collective, Rank};

use super::{
    combine::{Nothing, With},
    counts::{BothSides, Counts, OneSide, Sides},
    form::{
        Combines, Form, KnowsLength, KnowsSource, KnowsTarget, Separate, TakesLength, WithCounts,
        WithLen,
    },
    verb::Verb,
};
use crate::Result;
#[cfg(doc)]
use crate::{Displacements, Error, Team, error::CallError, nonblocking::Overlap};

/// The data of a call. To make the call, use the method that is named after the collective.
///
/// | the data | from | every PE gets | some PEs get |
/// | --- | --- | --- | --- |
/// | values | [`team.values(&v)`](Team::values) | `Vec<T>` | `Option<Vec<T>>` |
/// | a slice to read and one to write | [`team.slices(&a, &mut b)`](Team::slices) | `()` | `()` |
/// | a slice to read and write | [`team.in_place(&mut v)`](Team::in_place) | `()` | `()` |
/// | symmetric memory | [`team.in_symmetric(&a, &b)`](Team::in_symmetric) | `()` | `()` |
/// | a vector, nonblocking | [`team.start(v)`](Team::start) | a request for `Vec<T>` | a request for `Option<Vec<T>>` |
/// | two vectors, nonblocking | [`team.start_into(a, b)`](Team::start_into) | a request for both | the same |
/// | symmetric memory, nonblocking | [`team.start_symmetric(&a, &b)`](Team::start_symmetric) | a request for `()` | the same |
/// | borrowed slices, nonblocking | [`scope.start_into(&a, &mut b)`](Overlap::start_into) | a request for both | the same |
/// | a borrowed slice, nonblocking | [`scope.start_in_place(&mut v)`](Overlap::start_in_place) | a request for it | the same |
/// | vectors given later, many times | [`team.plan::<T>(len)`](Team::plan) | a plan for `Vec<T>` | a plan for `Option<Vec<T>>` |
///
/// "Some PEs" are the root of a gather or a reduction, and all PEs but PE 0 in an exclusive scan.
/// The others get `None`, or keep what is in their target.
///
/// All PEs of the team make the same call: the same collective, on the same form of data, with the
/// same root, length, type, operator and modes. A buffer that a PE neither contributes nor receives
/// is ignored, and may be empty: the source of all PEs but the root in a scatter, and their target
/// in a gather and a reduction. A call on values works in every synchronization mode. Slices are
/// borrowed, so exit mode None is refused; see the [front page](crate#synchronization-modes).
///
/// # Errors
/// Each collective returns, besides the errors of [`Team`],
///
/// - [`CallError::RootOutOfRange`] if it has a root;
/// - [`CallError::Lengths`] or [`CallError::Blocks`] if the lengths of source and target do not fit
///   the collective: the first where both have one block, the second otherwise;
/// - [`CallError::BorrowedSlice`] on slices with exit mode None;
/// - [`CallError::InPlace`] if source and target are the same symmetric memory, and
///   [`CallError::TwoMemories`] in a broadcast if they are not;
/// - [`CallError::OtherJob`] in symmetric memory of another job;
/// - [`CallError::Plan`] if no algorithm serves the call.
///
/// With counts, it also returns
///
/// - [`CallError::Displacements`] if the blocks do not fit the team or a buffer, or those of a
///   target overlap;
/// - [`CallError::OutOfBounds`] if this PE's block is longer than its buffer;
/// - [`CallError::LengthWithCounts`] if a length is stated for an all-to-all, other than 0;
/// - [`Error::Mismatched`] when two PEs state different lengths for a block.
///
/// ```
/// use consort::{Job, Rank, ops::Sum};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let mine = [world.rank().0; 2];
///     let mut sums = [0; 2];
///     world.slices(&mine, &mut sums).all_reduce(Sum)?;
///     assert_eq!(sums, [3, 3]);
///     world.in_place(&mut sums).scan(Sum)?;
///     assert_eq!(sums[0], 3 * (world.rank().0 + 1));
///     let all = world.values(&mine).gather(Rank(0))?;
///     assert_eq!(all, (world.rank() == Rank(0)).then(|| vec![0, 0, 1, 1, 2, 2]));
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
///
/// If a collective does not support a form, the program does not compile.
///
/// ```compile_fail,E0277
/// # use consort::{Job, ops::Sum};
/// Job::threads(3).run(|pe| pe.world().in_place(&mut [1, 2]).exclusive_scan(Sum));
/// ```
#[derive(Debug)]
#[must_use = "this only names the data of a call: call a collective on it, such as \
              `.all_reduce(Sum)`"]
pub struct Call<F>(pub(crate) F);

/// # Collectives
impl<F: Form> Call<F> {
    /// Copies the root's source to every PE's target. All buffers have one length. The root's
    /// target may be empty; otherwise it is written too. Where a PE has one buffer (values, in
    /// place, a vector that is started), the root's data replaces that of the other PEs. In
    /// symmetric memory, a broadcast works in place: source and target are the same.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let mut table = vec![pe.world().rank().0; 100];
    ///     pe.world().in_place(&mut table).broadcast(Rank(2))?;
    ///     Ok(table[99])
    /// })?;
    /// assert_eq!(all, [2; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn broadcast(self, root: Rank) -> Result<F::All> {
        self.all(Verb::rooted(Collective::Broadcast, root))
    }

    /// Copies block `i` of the root's source to PE `i`'s target. All blocks have one length. The
    /// sources of other PEs are ignored.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(2).run(|pe| {
    ///     let digits = [3, 1, 4, 1];
    ///     pe.world().values(&digits).with_len(2).scatter(Rank(0))
    /// })?;
    /// assert_eq!(all, [[3, 1], [4, 1]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn scatter(self, root: Rank) -> Result<F::All>
    where
        F: KnowsLength,
    {
        self.all(Verb::rooted(Collective::Scatter, root))
    }

    /// Copies PE `i`'s source to block `i` of the root's target. All sources have one length, and
    /// the root's target has one block of that length for each PE. The targets of other PEs are
    /// ignored.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn gather(self, root: Rank) -> Result<F::Some>
    where
        F: Separate,
    {
        self.some(Verb::rooted(Collective::Gather, root))
    }

    /// Copies PE `i`'s source to block `i` of every PE's target. All sources have one length, and
    /// each target has one block of that length for each PE. In place, PE `i`'s source is block `i`
    /// of its data. The call copies that block.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().values(&[(me, 'a'), (me, 'b')]).all_gather()
    /// })?;
    /// assert_eq!(all[1], [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn all_gather(self) -> Result<F::All> {
        self.all(Verb::new(Collective::AllGather))
    }

    /// Copies block `i` of PE `j`'s source to block `j` of PE `i`'s target. Each source and each
    /// target has one block for each PE, all of one length. In place, the call copies the data.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn all_to_all(self) -> Result<F::All> {
        self.all(Verb::new(Collective::AllToAll))
    }

    /// Combines the sources of all PEs, element by element and in the order of the ranks, into the
    /// root's target. The targets of other PEs are not touched. In place, the data of other PEs does
    /// not change.
    ///
    /// Operators are [`Sum`](crate::ops::Sum), [`Product`](crate::ops::Product),
    /// [`Min`](crate::ops::Min), [`Max`](crate::ops::Max), the bitwise ones, associative closures,
    /// and types that implement [`Operator`](crate::ops::Operator).
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::{Job, Rank, ops::Sum};
    /// let all = Job::threads(3).run(|pe| {
    ///     let mut data = [1, 10];
    ///     pe.world().in_place(&mut data).reduce(Sum, Rank(0))?;
    ///     Ok(data)
    /// })?;
    /// assert_eq!(all, [[3, 30], [1, 10], [1, 10]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn reduce<O>(self, operator: O, root: Rank) -> Result<F::Some>
    where
        F: Combines<O>,
    {
        let verb = Verb::rooted(Collective::Reduce, root);
        self.0.some(verb, With(operator), Location::caller())
    }

    /// Combines the sources of all PEs, element by element and in the order of the ranks, into
    /// every PE's target.
    ///
    /// A blocking call in place copies no data of 32 KiB or more, unless a forced algorithm needs
    /// contributions separate from results, an element is larger than 16 KiB, or the PEs are two
    /// processes. These copy in the first call of a kind, and later unless the algorithm is
    /// `direct`. Other data is copied, at most 1 MiB at a time. Processes combine private data of
    /// more than 1 MiB by a call for each MiB, which profiles count; short floats are widened
    /// first among three or more PEs. This holds for [`Call::reduce`] and [`Call::scan`] too.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn all_reduce<O>(self, operator: O) -> Result<F::All>
    where
        F: Combines<O>,
    {
        self.0.all(Verb::new(Collective::AllReduce), With(operator), Location::caller())
    }

    /// Combines the sources of all PEs, element by element and in the order of the ranks, and
    /// copies block `i` of the result to PE `i`'s target. All blocks have one length.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn reduce_scatter<O>(self, operator: O) -> Result<F::All>
    where
        F: Combines<O> + Separate,
    {
        self.0.all(Verb::new(Collective::ReduceScatter), With(operator), Location::caller())
    }

    /// Combines the sources of PEs 0 to `i`, element by element and in the order of the ranks, into
    /// PE `i`'s target.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn scan<O>(self, operator: O) -> Result<F::All>
    where
        F: Combines<O>,
    {
        self.0.all(Verb::new(Collective::Scan), With(operator), Location::caller())
    }

    /// Combines the sources of the PEs before PE `i`, element by element and in the order of the
    /// ranks, into PE `i`'s target. PE 0's target is not touched.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn exclusive_scan<O>(self, operator: O) -> Result<F::Some>
    where
        F: Combines<O> + Separate,
    {
        self.0.some(Verb::new(Collective::ExclusiveScan), With(operator), Location::caller())
    }

    /// Makes any collective but a barrier. This is for programs that take the collective as a
    /// parameter, such as benchmarks. The operator is ignored if nothing is combined, and the root
    /// if the collective has none. Vector variants move blocks of equal length here. Where the
    /// collective's own method returns `None`, the result here is unspecified.
    ///
    /// # Errors
    /// See [`Call`].
    #[inline]
    #[track_caller]
    pub fn any<O>(self, collective: Collective, operator: O, root: Rank) -> Result<F::All>
    where
        F: Combines<O> + KnowsLength,
    {
        let root = collective.is_rooted().then_some(root);
        let verb = Verb { root, ..Verb::new(collective) };
        match collective.combines() {
            true => self.0.all(verb, With(operator), Location::caller()),
            false => self.all(verb),
        }
    }

    /// States the length of the block that this PE contributes, or in a scatter receives, if the
    /// buffers' lengths do not determine it. In symmetric memory, the call uses the first blocks of
    /// this length.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (own, sums) = (world.symmetric::<u64>(100)?, world.symmetric::<u64>(100)?);
    ///     own.fill(1)?;
    ///     world.in_symmetric(&own, &sums).with_len(10).all_reduce(Sum)?;
    ///     assert_eq!((sums.load(9)?, sums.load(10)?), (2, 0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn with_len(self, len: usize) -> Call<WithLen<F>>
    where
        F: TakesLength,
    {
        Call(WithLen { form: self.0, len })
    }

    /// States the lengths of blocks that differ from PE to PE, as in MPI's vector variants:
    /// `&displacements` for a scatter, a gather or an all-gather, and `(&given, &received)` for an
    /// all-to-all.
    ///
    /// ```
    /// use consort::{Displacements, Job, Rank};
    ///
    /// Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let blocks = Displacements::new(&[0, 1, 2])?; // as many as its rank
    ///     let (source, mut all) = (vec![world.rank().0; world.rank().index()], [0; 3]);
    ///     world.slices(&source, &mut all).with_counts(&blocks).all_gather()?;
    ///     assert_eq!(all, [1, 2, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn with_counts<B: Counts>(self, counts: B) -> Call<WithCounts<F, B>>
    where
        F: Separate,
    {
        Call(WithCounts { form: self.0, counts })
    }

    #[inline]
    #[track_caller]
    fn all(self, verb: Verb<'_>) -> Result<F::All> {
        self.0.all(verb, Nothing, Location::caller())
    }

    #[inline]
    #[track_caller]
    fn some(self, verb: Verb<'_>) -> Result<F::Some> {
        self.0.some(verb, Nothing, Location::caller())
    }
}

/// # Collectives on blocks of unequal length
///
/// The counts of PEs other than the root are ignored in a scatter and a gather. Exit mode None is
/// treated as Mine for values and in symmetric memory: no PE returns while its buffer is exposed.
/// Slices refuse it, as in every call.
impl<F: Form, B> Call<WithCounts<F, B>> {
    /// Copies block `i` of the root's source to PE `i`'s target.
    ///
    /// # Errors
    /// See [`Call`].
    #[track_caller]
    pub fn scatter(self, root: Rank) -> Result<F::All>
    where
        F: KnowsTarget,
        B: OneSide,
    {
        let given = Some(self.0.counts.blocks());
        let sides = Sides { given, received: None };
        let verb = Verb { sides, ..Verb::rooted(Collective::ScatterVector, root) };
        self.0.form.all(verb, Nothing, Location::caller())
    }

    /// Copies PE `i`'s source to block `i` of the root's target.
    ///
    /// # Errors
    /// See [`Call`].
    #[track_caller]
    pub fn gather(self, root: Rank) -> Result<F::Some>
    where
        F: KnowsSource,
        B: OneSide,
    {
        let received = Some(self.0.counts.blocks());
        let sides = Sides { given: None, received };
        let verb = Verb { sides, ..Verb::rooted(Collective::GatherVector, root) };
        self.0.form.some(verb, Nothing, Location::caller())
    }

    /// Copies PE `i`'s source to block `i` of every PE's target.
    ///
    /// # Errors
    /// See [`Call`].
    #[track_caller]
    pub fn all_gather(self) -> Result<F::All>
    where
        F: KnowsSource,
        B: OneSide,
    {
        let received = Some(self.0.counts.blocks());
        let sides = Sides { given: None, received };
        let verb = Verb { sides, ..Verb::new(Collective::AllGatherVector) };
        self.0.form.all(verb, Nothing, Location::caller())
    }

    /// Copies block `i` of PE `j`'s source to block `j` of PE `i`'s target.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// use consort::{Displacements, Job};
    ///
    /// let all = Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let me = world.rank().index();
    ///     // PE 0 sends one element to each PE, and PE 1 two.
    ///     let given = Displacements::new(&[me + 1; 2])?;
    ///     let received = Displacements::new(&[1, 2])?;
    ///     let (source, mut target) = (vec![me; given.extent()], vec![9; received.extent()]);
    ///     world.slices(&source, &mut target).with_counts((&given, &received)).all_to_all()?;
    ///     Ok(target)
    /// })?;
    /// assert_eq!(all, [[0, 1, 1]; 2]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_to_all(self) -> Result<F::All>
    where
        B: BothSides,
    {
        let verb = Verb { sides: self.0.counts.sides(), ..Verb::new(Collective::AllToAllVector) };
        self.0.form.all(verb, Nothing, Location::caller())
    }
}
