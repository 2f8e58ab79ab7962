//! Calls on values.

use std::{marker::PhantomData, panic::Location, slice};

use bytemuck::Zeroable;
use consort_fabric::{Collective, Operator, Rank};
use consort_native::Site;

use super::{
    call::Call,
    combine::{Combine, CombineValues},
    form::{KnowsSource, Makes, Returns, Sealed, Separate, TakesLength},
    verb::{Verb, blank, check_len, ensure_fits},
};
#[cfg(doc)]
use crate::error::CallError;
use crate::{
    Displacements, Result, Team,
    value::{Unpacking, Value},
};

/// Values to read; from [`Team::values`]. The call returns a new vector.
#[derive(Debug)]
pub struct Values<'a, T, Kind> {
    team: &'a Team,
    source: &'a [T],
    kind: PhantomData<fn(Kind)>,
}

/// Values whose number differs from PE to PE; from [`Call::uneven`].
#[derive(Debug)]
pub struct Uneven<'a, T, Kind> {
    team: Team,
    source: &'a [T],
    kind: PhantomData<fn(Kind)>,
}

/// # Collectives on values
impl Team {
    /// Returns the root's `value` on every PE. The value is copied into the call, so the modes may
    /// be Loose. The `value` of other PEs is ignored.
    ///
    /// For several values of each PE, slices and other data: [`Call::broadcast`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     world.broadcast((world.rank() == Rank(1), 'x'), Rank(1))
    /// })?;
    /// assert_eq!(all, [(true, 'x'); 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn broadcast<T: Value<Kind>, Kind>(&self, mut value: T, root: Rank) -> Result<T> {
        let site = Location::caller();
        value
            .as_packed(|packed| self.broadcast_data::<T, _>(root, slice::from_mut(packed), site))?;
        Ok(value)
    }

    /// Returns value `i` of the root's `values` on PE `i`. The root passes one value for each PE. The
    /// values of other PEs are ignored, and may be empty.
    ///
    /// For several values of each PE, slices and other data: [`Call::scatter`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`],
    /// [`CallError::Blocks`] on the root, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| pe.world().scatter(&[3, 1, 4], Rank(2)))?;
    /// assert_eq!(all, [3, 1, 4]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter<T: Value<Kind>, Kind>(&self, values: &[T], root: Rank) -> Result<T> {
        let mut target = [T::Packed::zeroed()];
        let (verb, source) = (Verb::rooted(Collective::Scatter, root), T::pack_all(values));
        self.on_slices::<T, _>(verb, None, &source, &mut target, Location::caller())?;
        let [mine] = target;
        Ok(T::unpack(mine))
    }

    /// Returns the `value` of every PE on the root, in the order of the ranks, and `None` on other
    /// PEs.
    ///
    /// For several values of each PE, slices and other data: [`Call::gather`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| pe.world().gather(pe.world().rank().0, Rank(1)))?;
    /// assert_eq!(all, [None, Some(vec![0, 1, 2]), None]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn gather<T: Value<Kind>, Kind>(&self, value: T, root: Rank) -> Result<Option<Vec<T>>> {
        self.values(&[value]).gather(root)
    }

    /// Returns the `value` of every PE, in the order of the ranks. The value is copied into the
    /// call, so the modes may be Loose.
    ///
    /// For several values of each PE, slices and other data: [`Call::all_gather`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(3).run(|pe| pe.world().all_gather(pe.world().rank().0 * 10))?;
    /// assert_eq!(all, [[0, 10, 20]; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_gather<T: Value<Kind>, Kind>(&self, value: T) -> Result<Vec<T>> {
        self.values(&[value]).all_gather()
    }

    /// Returns the values for this PE, in the order of the ranks of the PEs that sent them. Each PE
    /// passes one value for each PE, or blocks of several, all of one length.
    ///
    /// For several values of each PE, slices and other data: [`Call::all_to_all`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], and see [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().all_to_all(&[10 * me, 10 * me + 1])
    /// })?;
    /// assert_eq!(all, [[0, 10], [1, 11]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_to_all<T: Value<Kind>, Kind>(&self, values: &[T]) -> Result<Vec<T>> {
        self.values(values).all_to_all()
    }

    /// Combines the `value` of every PE in the order of the ranks, and returns the result on the
    /// root, and `None` on other PEs. The value is copied into the call, so the modes may be Loose.
    ///
    /// Operators are [`Sum`](crate::ops::Sum), [`Product`](crate::ops::Product),
    /// [`Min`](crate::ops::Min), [`Max`](crate::ops::Max), the bitwise ones, associative closures,
    /// and types that implement [`Operator`].
    ///
    /// For several values of each PE, slices and other data: [`Call::reduce`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank, ops::Max};
    /// let all = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     world.reduce(f64::from(world.rank().0), Max, Rank(0))
    /// })?;
    /// assert_eq!(all, [Some(2.0), None, None]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn reduce<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
        root: Rank,
    ) -> Result<Option<T>> {
        let verb = Verb::rooted(Collective::Reduce, root);
        let result = self.combine_value(verb, value, operator, Location::caller())?;
        Ok(verb.is_among_some(self).then(|| T::unpack(result)))
    }

    /// Combines the `value` of every PE in the order of the ranks, and returns the result on every
    /// PE. The value is copied into the call, so the modes may be Loose.
    ///
    /// For several values of each PE, slices and other data: [`Call::all_reduce`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(3).run(|pe| {
    ///     let residual = f64::from(pe.world().rank().0);
    ///     pe.world().all_reduce(residual, Sum)
    /// })?;
    /// assert_eq!(all, [3.0; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn all_reduce<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
    ) -> Result<T> {
        let verb = Verb::new(Collective::AllReduce);
        self.combine_value(verb, value, operator, Location::caller()).map(T::unpack)
    }

    /// Combines the `values` of all PEs, element by element and in the order of the ranks, and
    /// returns result `i` on PE `i`. Each PE passes one value for each PE.
    ///
    /// For several values of each PE, slices and other data: [`Call::reduce_scatter`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(3).run(|pe| pe.world().reduce_scatter(&[1, 10, 100], Sum))?;
    /// assert_eq!(all, [3, 30, 300]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn reduce_scatter<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        values: &[T],
        operator: O,
    ) -> Result<T> {
        let (verb, site) = (Verb::new(Collective::ReduceScatter), Location::caller());
        let (source, mut target) = (T::pack_all(values), [T::Packed::zeroed()]);
        let operator = Unpacking::new(operator);
        let combining = Some(T::combining(&operator));
        self.on_slices::<T, _>(verb, combining, &source, &mut target, site)?;
        let [mine] = target;
        Ok(T::unpack(mine))
    }

    /// Combines the values of PEs 0 to `i` in the order of the ranks, and returns the result on PE
    /// `i`. The value is copied into the call, so the modes may be Loose.
    ///
    /// For several values of each PE, slices and other data: [`Call::scan`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(3).run(|pe| pe.world().scan(10, Sum))?;
    /// assert_eq!(all, [10, 20, 30]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scan<T: Value<Kind>, O: Operator<T>, Kind>(&self, value: T, operator: O) -> Result<T> {
        let verb = Verb::new(Collective::Scan);
        self.combine_value(verb, value, operator, Location::caller()).map(T::unpack)
    }

    /// Combines the values of the PEs before PE `i` in the order of their ranks, and returns the
    /// result on PE `i`. Returns `None` on PE 0, which has no PE before it.
    ///
    /// For several values of each PE, slices and other data: [`Call::exclusive_scan`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// // The position of each PE's part in a file that all write together.
    /// let all = Job::threads(3).run(|pe| pe.world().exclusive_scan(100_u64, Sum))?;
    /// assert_eq!(all, [None, Some(100), Some(200)]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn exclusive_scan<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
    ) -> Result<Option<T>> {
        let verb = Verb::new(Collective::ExclusiveScan);
        let result = self.combine_value(verb, value, operator, Location::caller())?;
        Ok(verb.is_among_some(self).then(|| T::unpack(result)))
    }

    /// Names the data of a call: several values of each PE. The call returns a vector. Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Max};
    /// let all = Job::threads(2).run(|pe| pe.world().values(&[1, 2, 3, 4]).reduce_scatter(Max))?;
    /// assert_eq!(all, [[1, 2], [3, 4]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn values<'a, T: Value<Kind>, Kind>(
        &'a self,
        source: &'a [T],
    ) -> Call<Values<'a, T, Kind>> {
        Call(Values { team: self, source, kind: PhantomData })
    }

    /// Combines one value, and returns the packed result.
    #[inline(always)]
    fn combine_value<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        verb: Verb<'_>,
        value: T,
        operator: O,
        site: Site,
    ) -> Result<T::Packed> {
        let source = [value.pack()];
        let mut target = source;
        let operator = Unpacking::new(operator);
        let combining = Some(T::combining(&operator));
        self.on_slices::<T, _>(verb, combining, &source, &mut target, site)?;
        let [result] = target;
        Ok(result)
    }
}

impl<T: Value<Kind>, Kind> Values<'_, T, Kind> {
    fn make<C: CombineValues<T, Kind>>(
        &self,
        verb: Verb<'_>,
        combine: C,
        site: Site,
    ) -> Result<Vec<T>> {
        let (team, source) = (self.team, T::pack_all(self.source));
        if let (Collective::Broadcast, Some(root)) = (verb.collective, verb.root) {
            verb.check_stated(source.len())?;
            let mut data = source.into_owned();
            team.broadcast_data::<T, _>(root, &mut data, site)?;
            return Ok(T::unpack_all(data));
        }
        let mut target;
        if let Some(held) = verb.held(team, verb.len.unwrap_or(source.len()))? {
            let team = team.keeping();
            ensure_fits::<T::Packed>(verb.collective, held[1].extent())?;
            target = blank(held[1].extent());
            team.on_blocks::<T, _>(verb, held, &source, &mut target, site)?;
        } else {
            let (contributed, received) = verb.blocks(team);
            let blocks = (contributed, received);
            let len = verb.len.unwrap_or(source.len() / contributed.max(1) as usize);
            let target_len = len.saturating_mul(received as usize);
            ensure_fits::<T::Packed>(verb.collective, target_len)?;
            check_len(verb.collective, blocks, team.size(), len, source.len(), target_len)?;
            target = blank(target_len);
            let combine = combine.on_packed();
            team.on_slices::<T, _>(verb, combine.combination(), &source, &mut target, site)?;
        }
        Ok(T::unpack_all(target))
    }
}

impl<T, Kind> Returns for Values<'_, T, Kind> {
    type All = Vec<T>;
    type Some = Option<Vec<T>>;
}

impl<T: Value<Kind>, Kind, C: CombineValues<T, Kind>> Makes<C> for Values<'_, T, Kind> {
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Vec<T>> {
        self.make(verb, combine, site)
    }

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Option<Vec<T>>> {
        let results = self.make(verb, combine, site)?;
        Ok(verb.is_among_some(self.team).then_some(results))
    }
}

impl<T, Kind> Sealed for Values<'_, T, Kind> {}
impl<T, Kind> Separate for Values<'_, T, Kind> {}
impl<T, Kind> TakesLength for Values<'_, T, Kind> {}
impl<T, Kind> KnowsSource for Values<'_, T, Kind> {}

impl<'a, T: Value<Kind>, Kind> Call<Values<'a, T, Kind>> {
    /// Lets the number of values differ from PE to PE. The call first exchanges the numbers, in a
    /// separate collective. Exit mode None is treated as Mine.
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let me = pe.world().rank();
    ///     pe.world().values(&vec![me.0; me.index()]).uneven().all_gather() // as many as its rank
    /// })?;
    /// let (values, blocks) = &all[0];
    /// assert_eq!(values, &[1, 2, 2]);
    /// assert_eq!(blocks.range(Rank(2)), 1..3);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn uneven(self) -> Call<Uneven<'a, T, Kind>> {
        let Values { team, source, kind } = self.0;
        Call(Uneven { team: team.keeping(), source, kind })
    }
}

/// # Different numbers of values on each PE
impl<T: Value<Kind>, Kind> Call<Uneven<'_, T, Kind>> {
    /// Returns block `i` of the root's values on PE `i`. Other PEs' values and `blocks` are
    /// ignored.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::{Displacements, Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let (digits, blocks) = match pe.world().rank() {
    ///         Rank(0) => (vec![3, 1, 4, 1, 5, 9], Displacements::new(&[1, 3, 2])?),
    ///         _ => Default::default(),
    ///     };
    ///     pe.world().values(&digits).uneven().scatter(&blocks, Rank(0))
    /// })?;
    /// assert_eq!(all[1], [1, 4, 1]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter(self, blocks: &Displacements, root: Rank) -> Result<Vec<T>> {
        let Uneven { team, source, .. } = self.0;
        let mut counts = Vec::new();
        if team.rank() == root {
            blocks.check_source(team.pes(), source.len())?;
            counts = blocks.counts();
        }
        let len = team.scatter(&counts, root)?;
        team.values(source).with_len(len).with_counts(blocks).scatter(root)
    }

    /// Returns the values of all PEs one after the other on the root, with the displacements of
    /// each PE's block, and `None` on other PEs.
    ///
    /// # Errors
    /// See [`Call`].
    #[track_caller]
    pub fn gather(self, root: Rank) -> Result<Option<(Vec<T>, Displacements)>> {
        let Uneven { team, source, .. } = self.0;
        let blocks = match team.gather(source.len(), root)? {
            Some(counts) => Displacements::new(&counts)?,
            None => Displacements::default(),
        };
        let all = team.values(source).with_counts(&blocks).gather(root)?;
        Ok(all.map(|all| (all, blocks)))
    }

    /// Returns the values of all PEs one after the other, and the displacements of each PE's block.
    ///
    /// # Errors
    /// See [`Call`].
    #[track_caller]
    pub fn all_gather(self) -> Result<(Vec<T>, Displacements)> {
        let Uneven { team, source, .. } = self.0;
        let blocks = Displacements::new(&team.all_gather(source.len())?)?;
        let all = team.values(source).with_counts(&blocks).all_gather()?;
        Ok((all, blocks))
    }

    /// Returns the values for this PE, in the order of the ranks of the PEs that sent them, and
    /// their displacements. `given` are the blocks of this PE's values.
    ///
    /// # Errors
    /// See [`Call`].
    ///
    /// ```
    /// # use consort::{Displacements, Job};
    /// let all = Job::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     let given = Displacements::new(&[1, 2])?;
    ///     pe.world().values(&[me, me + 10, me + 20]).uneven().all_to_all(&given)
    /// })?;
    /// assert_eq!(all[0].0, [0, 1]);
    /// assert_eq!(all[1].0, [10, 20, 11, 21]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_to_all(self, given: &Displacements) -> Result<(Vec<T>, Displacements)> {
        let Uneven { team, source, .. } = self.0;
        given.check_source(team.pes(), source.len())?;
        let received = Displacements::new(&team.all_to_all(&given.counts())?)?;
        let all = team.values(source).with_counts((given, &received)).all_to_all()?;
        Ok((all, received))
    }
}
