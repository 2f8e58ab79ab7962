//! Blocking collectives on arrays.

use consort::{Rank, Team, ops::Operator, tune::Collective};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{
    arrays::{Read, Written, for_type_of},
    dispatch::call,
    types::{Data, Takes, no_operator},
};

/// A collective, its operator by name, and its root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'n> {
    pub(crate) collective: Collective,
    pub(crate) operator: &'n str,
    pub(crate) root: Rank,
}

impl<'n> Call<'n> {
    /// Creates a call from these names.
    pub(crate) fn new(collective: &str, operator: Option<&'n str>, root: Rank) -> PyResult<Self> {
        let collective: Collective =
            collective.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        Ok(Self { collective, operator: operator.unwrap_or("sum"), root })
    }
}

/// A call on slices. Without a source it is in place.
struct OnSlices<'s, T> {
    team: &'s Team,
    collective: Collective,
    root: Rank,
    source: Option<&'s [T]>,
    target: &'s mut [T],
}

impl<T: Data> Takes<T> for OnSlices<'_, T> {
    type Output = consort::Result<()>;

    fn take<O: Operator<T> + Copy + Send + 'static>(self, operator: O) -> consort::Result<()> {
        let Self { team, collective, root, source, target } = self;
        match (source, collective) {
            (Some(source), _) => team.slices(source, target).any(collective, operator, root),
            (None, Collective::Reduce) => team.in_place(target).reduce(operator, root),
            (None, Collective::AllReduce) => team.in_place(target).all_reduce(operator),
            (None, Collective::Scan) => team.in_place(target).scan(operator),
            (None, _) => team.slices(&[], target).any(collective, operator, root),
        }
    }
}

/// Makes a call on arrays, in the team with this launch number and index.
pub(crate) fn make(
    py: Python<'_>,
    team: (u64, usize),
    what: Call<'_>,
    source: Option<&Bound<'_, PyAny>>,
    target: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some(either) = source.or(target) else {
        return Err(PyValueError::new_err("the call has neither a source nor a target: pass one"));
    };
    for_type_of!(either, T => make_on::<T>(py, team, what, source, target))
}

fn make_on<T: Data>(
    py: Python<'_>,
    (launch, index): (u64, usize),
    what: Call<'_>,
    source: Option<&Bound<'_, PyAny>>,
    target: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Call { collective, operator, root } = what;
    let source = source.map(|array| Read::<T>::new(array, "the array")).transpose()?;
    let mut target =
        target.map(|array| Written::<T>::new(array, source.as_ref(), "the result")).transpose()?;
    let source = source.as_ref().map(Read::slice);
    let target = target.as_mut().map_or(&mut [][..], Written::slice);
    if !collective.combines() {
        return call(py, launch, index, |team, running| {
            running.call.set(collective.name());
            OnSlices { team, collective, root, source, target }.only_moves()
        });
    }
    if !T::OPERATORS.contains(&operator) {
        return Err(no_operator::<T>(operator));
    }
    call(py, launch, index, |team, running| {
        running.call.set(collective.name());
        let on = OnSlices { team, collective, root, source, target };
        T::combine(operator, on).unwrap_or(Ok(()))
    })
}

impl<T: Data> OnSlices<'_, T> {
    /// Makes a call that combines nothing.
    fn only_moves(self) -> consort::Result<()> {
        let source = self.source.unwrap_or_default();
        // The operator is ignored.
        let operator = |left: T, _: T| left;
        self.team.slices(source, self.target).any(self.collective, operator, self.root)
    }
}
