//! Nonblocking collectives, which own their data. A start copies the array, and the result becomes
//! a new array, so a pending call borrows no array.

use std::sync::atomic::{AtomicBool, Ordering};

use consort::{Rank, Team, ops::Operator, tune::Collective};
use pyo3::prelude::*;

use crate::{
    arrays::{Read, array_of, for_type_of},
    calls::Call,
    dispatch::{call, forget},
    errors::exception,
    running::{Dropped, Pending, Result, Running},
    types::{Data, Takes, no_operator},
};

impl<T: Data> Result for Vec<T> {
    fn array<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, *self)
    }
}

impl Pending for consort::nonblocking::Request<()> {
    fn test(&mut self) -> consort::Result<bool> {
        consort::nonblocking::Request::test(self)
    }

    fn wait(self: Box<Self>) -> consort::Result<Option<Box<dyn Result>>> {
        consort::nonblocking::Request::wait(*self).map(|()| None)
    }
}

impl<T: Data> Pending for consort::nonblocking::Request<Vec<T>> {
    fn test(&mut self) -> consort::Result<bool> {
        consort::nonblocking::Request::test(self)
    }

    fn wait(self: Box<Self>) -> consort::Result<Option<Box<dyn Result>>> {
        Ok(Some(Box::new(consort::nonblocking::Request::wait(*self)?)))
    }
}

impl<T: Data> Pending for consort::nonblocking::Request<Option<Vec<T>>> {
    fn test(&mut self) -> consort::Result<bool> {
        consort::nonblocking::Request::test(self)
    }

    fn wait(self: Box<Self>) -> consort::Result<Option<Box<dyn Result>>> {
        let result = consort::nonblocking::Request::wait(*self)?;
        Ok(result.map(|elements| Box::new(elements) as Box<dyn Result>))
    }
}

/// The Python class of a nonblocking call: a number.
#[pyclass(frozen, module = "consort._consort")]
pub(crate) struct Request {
    launch: u64,
    index: usize,
    is_taken: AtomicBool,
}

/// Stores a call in the first free place.
pub(crate) fn keep(running: &Running, request: Box<dyn Pending>) -> usize {
    let mut requests = running.requests.borrow_mut();
    let free = requests.iter().position(Option::is_none);
    let index = free.unwrap_or(requests.len());
    if free.is_none() {
        requests.push(None);
    }
    requests[index] = Some(request);
    index
}

impl Request {
    pub(crate) fn new(launch: u64, index: usize) -> Self {
        Self { launch, index, is_taken: AtomicBool::new(false) }
    }
}

#[pymethods]
impl Request {
    /// Returns whether the call is complete.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        if self.is_taken.load(Ordering::Relaxed) {
            return Ok(true);
        }
        call(py, self.launch, 0, |_, running| {
            let mut requests = running.requests.borrow_mut();
            requests[self.index].as_mut().map_or(Ok(true), |request| request.test())
        })
    }

    /// Waits until the call is complete, and returns its result, once.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_taken.load(Ordering::Relaxed) {
            return Err(exception(&consort::Error::Call(consort::error::CallError::Taken)));
        }
        let result = call(py, self.launch, 0, |_, running| {
            self.is_taken.store(true, Ordering::Relaxed);
            let request = running.requests.borrow_mut()[self.index].take();
            request.ok_or(consort::Error::Call(consort::error::CallError::Taken))?.wait()
        })?;
        result.map(|elements| elements.array(py)).transpose()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if *self.is_taken.get_mut() {
            return;
        }
        forget(self.launch, Dropped::Request(self.index));
    }
}

/// Starts a barrier of the team with this launch number and index.
pub(crate) fn start_barrier(py: Python<'_>, (launch, team): (u64, usize)) -> PyResult<Request> {
    let index =
        call(py, launch, team, |team, running| Ok(keep(running, Box::new(team.start_barrier()?))))?;
    Ok(Request::new(launch, index))
}

/// Starts a call on a copy of an array, in the team with this launch number and index. `length` is
/// the length of a block, where it differs from that of the source.
pub(crate) fn start(
    py: Python<'_>,
    team: (u64, usize),
    what: Call<'_>,
    source: &Bound<'_, PyAny>,
    length: usize,
) -> PyResult<Request> {
    for_type_of!(source, T => start_on::<T>(py, team, what, source, length))
}

/// A call that owns its data.
struct OnVector<'s, T> {
    team: &'s Team,
    collective: Collective,
    root: Rank,
    source: Vec<T>,
    length: usize,
}

type Started = consort::Result<Box<dyn Pending>>;

impl<T: Data> Takes<T> for OnVector<'_, T> {
    type Output = Started;

    fn take<O: Operator<T> + Copy + Send + 'static>(self, operator: O) -> Started {
        let Self { team, collective, root, source, .. } = self;
        Ok(match collective {
            Collective::Reduce => Box::new(team.start(source).reduce(operator, root)?),
            Collective::ReduceScatter => Box::new(team.start(source).reduce_scatter(operator)?),
            Collective::Scan => Box::new(team.start(source).scan(operator)?),
            Collective::ExclusiveScan => Box::new(team.start(source).exclusive_scan(operator)?),
            _ => Box::new(team.start(source).all_reduce(operator)?),
        })
    }
}

impl<T: Data> OnVector<'_, T> {
    /// Starts a call that combines nothing.
    fn only_moves(self) -> Started {
        let Self { team, collective, root, source, length } = self;
        Ok(match collective {
            Collective::Scatter => Box::new(team.start(source).with_len(length).scatter(root)?),
            Collective::Gather => Box::new(team.start(source).gather(root)?),
            Collective::AllGather => Box::new(team.start(source).all_gather()?),
            Collective::AllToAll => Box::new(team.start(source).all_to_all()?),
            _ => Box::new(team.start(source).broadcast(root)?),
        })
    }
}

fn start_on<T: Data>(
    py: Python<'_>,
    (launch, team): (u64, usize),
    what: Call<'_>,
    source: &Bound<'_, PyAny>,
    length: usize,
) -> PyResult<Request> {
    let Call { collective, operator, root } = what;
    if collective.combines() && !T::OPERATORS.contains(&operator) {
        return Err(no_operator::<T>(operator));
    }
    let source = Read::<T>::new(source, "the array")?.slice().to_vec();
    let index = call(py, launch, team, |team, running| {
        let on = OnVector { team, collective, root, source, length };
        let request = if collective.combines() {
            T::combine(operator, on)
                .ok_or(consort::Error::Call(consort::error::CallError::Taken))??
        } else {
            on.only_moves()?
        };
        Ok(keep(running, request))
    })?;
    Ok(Request::new(launch, index))
}
