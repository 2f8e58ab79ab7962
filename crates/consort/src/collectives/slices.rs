//! Calls on slices, separate or in place, and in symmetric memory.

use consort_fabric::{Collective, Pod};
use consort_native::Site;

use super::{
    call::Call,
    combine::Combine,
    form::{KnowsLength, KnowsSource, KnowsTarget, Makes, Returns, Sealed, Separate, TakesLength},
    verb::{Verb, check_own, contribution_in_place, copy_own},
};
use crate::{Result, Symmetric, Team, symmetric::element::Element};

/// A slice to read and one to write; from [`Team::slices`].
#[derive(Debug)]
pub struct Slices<'a, T> {
    team: &'a Team,
    source: &'a [T],
    target: &'a mut [T],
}

/// A slice to read and write; from [`Team::in_place`].
#[derive(Debug)]
pub struct InPlace<'a, T> {
    team: &'a Team,
    data: &'a mut [T],
}

/// Symmetric memory; from [`Team::in_symmetric`].
#[derive(Debug)]
pub struct InSymmetric<'a, T: Element> {
    team: &'a Team,
    source: &'a Symmetric<T>,
    target: &'a Symmetric<T>,
}

/// # The data of a blocking call
impl Team {
    /// Names the data of a call: it reads `source` and writes `target`. Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(3).run(|pe| {
    ///     let mut sums = [0.0; 100];
    ///     pe.world().slices(&[0.5; 100], &mut sums).all_reduce(Sum)?;
    ///     assert_eq!(sums, [1.5; 100]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn slices<'a, T: Pod>(
        &'a self,
        source: &'a [T],
        target: &'a mut [T],
    ) -> Call<Slices<'a, T>> {
        Call(Slices { team: self, source, target })
    }

    /// Names the data of a call: it reads `data` and replaces it by the result. All PEs make the
    /// call in place. Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Max};
    /// let all = Job::threads(3).run(|pe| {
    ///     let mut most = [pe.world().rank().0, 7];
    ///     pe.world().in_place(&mut most).all_reduce(Max)?;
    ///     Ok(most)
    /// })?;
    /// assert_eq!(all, [[2, 7]; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn in_place<'a, T: Pod>(&'a self, data: &'a mut [T]) -> Call<InPlace<'a, T>> {
        Call(InPlace { team: self, data })
    }

    /// Names the data of a call: it reads every PE's part of `source` and writes every PE's part of
    /// `target`. In a broadcast, both are the same memory. Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let (own, sums) = (world.symmetric::<u64>(8)?, world.symmetric::<u64>(8)?);
    ///     own.fill(2)?;
    ///     world.in_symmetric(&own, &sums).all_reduce(Sum)?;
    ///     assert_eq!(sums.load(7)?, 6);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn in_symmetric<'a, T: Element>(
        &'a self,
        source: &'a Symmetric<T>,
        target: &'a Symmetric<T>,
    ) -> Call<InSymmetric<'a, T>> {
        Call(InSymmetric { team: self, source, target })
    }
}

impl<T: Pod> Slices<'_, T> {
    #[inline(always)]
    fn make<C: Combine<T>>(self, verb: Verb<'_>, combine: &C, site: Site) -> Result<()> {
        let Self { team, source, target } = self;
        team.refuse_borrowed()?;
        if verb.collective == Collective::Broadcast && verb.is_root(team) {
            check_own(source.len(), target.len())?;
            team.on_slices::<T, T>(verb, None, source, &mut [], site)?;
            copy_own(source, target);
            return Ok(());
        }
        let own = if verb.collective == Collective::ScatterVector { &*target } else { source };
        if let Some(held) = verb.held(team, own.len())? {
            return team.on_blocks::<T, T>(verb, held, source, target, site);
        }
        team.combine_slices::<T, T>(verb, combine.combination(), source, target, site)
    }
}

impl<T: Pod> InPlace<'_, T> {
    #[inline(always)]
    fn make<C: Combine<T>>(self, verb: Verb<'_>, combine: &C, site: Site) -> Result<()> {
        let Self { team, data } = self;
        team.refuse_borrowed()?;
        match (verb.collective, verb.root) {
            (Collective::Broadcast, Some(root)) => team.broadcast_data::<T, T>(root, data, site),
            (Collective::AllGather | Collective::AllToAll, _) => {
                let contribution = contribution_in_place(&verb, team, data);
                team.on_slices::<T, T>(verb, None, &contribution, data, site)
            }
            _ => team.combine_in_place::<T, T>(verb, combine.combination(), data, site),
        }
    }
}

impl<T: Element> InSymmetric<'_, T> {
    #[inline(always)]
    fn make<C: Combine<T>>(self, verb: Verb<'_>, combine: &C, site: Site) -> Result<()> {
        let Self { team, source, target } = self;
        if let Some(held) = verb.held(team, verb.len.unwrap_or(0))? {
            return team.on_symmetric_blocks(verb, held, source, target, site);
        }
        team.on_symmetric(verb, combine.combination(), source, target, site)
    }
}

/// A form whose calls return nothing: the result is in the caller's buffer.
macro_rules! returns_nothing {
    ($($form:ident of $bound:ident),*) => {$(
        impl<T: $bound> Returns for $form<'_, T> {
            type All = ();
            type Some = ();
        }

        impl<T: $bound, C: Combine<T>> Makes<C> for $form<'_, T> {
            #[inline(always)]
            fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<()> {
                self.make(verb, &combine, site)
            }

            #[inline(always)]
            fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<()> {
                self.make(verb, &combine, site)
            }
        }
    )*};
}

returns_nothing!(Slices of Pod, InPlace of Pod, InSymmetric of Element);

impl<T> Sealed for Slices<'_, T> {}
impl<T> Sealed for InPlace<'_, T> {}
impl<T> Separate for Slices<'_, T> {}
impl<T> KnowsLength for Slices<'_, T> {}
impl<T> KnowsSource for Slices<'_, T> {}
impl<T> KnowsTarget for Slices<'_, T> {}
impl<T: Element> Sealed for InSymmetric<'_, T> {}
impl<T: Element> Separate for InSymmetric<'_, T> {}
impl<T: Element> TakesLength for InSymmetric<'_, T> {}
impl<T: Element> KnowsLength for InSymmetric<'_, T> {}
