//! The Python class of a team: a number.

use std::{sync::Arc, time::Duration};

use consort::tune::Collective;
use pyo3::{prelude::*, types::PyAny};

use crate::{
    calls::{self, Call},
    dispatch::{call, with},
    errors::rank,
    lent,
    memory::{self, Memory},
    messages, objects,
    requests::{self, Request},
    running::Fail,
};

/// A team, on one of its PEs.
#[pyclass(frozen, module = "consort._consort")]
pub(crate) struct Team {
    launch: u64,
    index: usize,
    /// This PE's rank.
    #[pyo3(get)]
    rank: u32,
    /// The number of PEs.
    #[pyo3(get)]
    size: usize,
    fail: Fail,
}

impl Team {
    /// Returns the team of all PEs of a launch.
    pub(crate) fn world(py: Python<'_>, launch: u64) -> PyResult<Self> {
        Self::at(py, launch, 0)
    }

    fn at(py: Python<'_>, launch: u64, index: usize) -> PyResult<Self> {
        with(py, launch, |running| {
            let team = &running.teams.borrow()[index];
            let fail = Arc::clone(&running.fail);
            Self { launch, index, rank: team.rank().0, size: team.size(), fail }
        })
    }
}

#[pymethods]
impl Team {
    /// Waits for all PEs.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        call(py, self.launch, self.index, |team, running| {
            running.call.set(Collective::Barrier.name());
            team.barrier()
        })
    }

    /// Makes a collective on arrays. Without a `source`, `target` is combined in place.
    #[pyo3(signature = (collective, source, target, operator=None, root=0))]
    fn collective(
        &self,
        py: Python<'_>,
        collective: &str,
        source: Option<&Bound<'_, PyAny>>,
        target: Option<&Bound<'_, PyAny>>,
        operator: Option<&str>,
        root: i64,
    ) -> PyResult<()> {
        let what = Call::new(collective, operator, rank(root, self.size)?)?;
        calls::make(py, (self.launch, self.index), what, source, target)
    }

    /// Starts a collective on a copy of an array. The result has `length` elements.
    #[pyo3(signature = (collective, source, length, operator=None, root=0))]
    fn start(
        &self,
        py: Python<'_>,
        collective: &str,
        source: &Bound<'_, PyAny>,
        length: usize,
        operator: Option<&str>,
        root: i64,
    ) -> PyResult<Request> {
        let what = Call::new(collective, operator, rank(root, self.size)?)?;
        requests::start(py, (self.launch, self.index), what, source, length)
    }

    /// Starts a barrier.
    fn start_barrier(&self, py: Python<'_>) -> PyResult<Request> {
        requests::start_barrier(py, (self.launch, self.index))
    }

    /// Sends an array to a PE.
    fn send(&self, py: Python<'_>, array: &Bound<'_, PyAny>, to: i64) -> PyResult<()> {
        messages::send(py, (self.launch, self.index), (rank(to, self.size)?, array))
    }

    /// Receives an array from a PE.
    fn receive(&self, py: Python<'_>, out: &Bound<'_, PyAny>, source: i64) -> PyResult<()> {
        messages::receive(py, (self.launch, self.index), (rank(source, self.size)?, out))
    }

    /// Sends one array and receives another one.
    fn send_receive(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        to: i64,
        out: &Bound<'_, PyAny>,
        source: i64,
    ) -> PyResult<()> {
        let (to, from) = (rank(to, self.size)?, rank(source, self.size)?);
        messages::send_receive(py, (self.launch, self.index), (to, array), (from, out))
    }

    /// Starts sending a copy of an array.
    fn start_send(&self, py: Python<'_>, array: &Bound<'_, PyAny>, to: i64) -> PyResult<Request> {
        messages::start_send(py, (self.launch, self.index), (rank(to, self.size)?, array))
    }

    /// Starts receiving `length` elements of the type of `like`.
    fn start_receive(
        &self,
        py: Python<'_>,
        source: i64,
        like: &Bound<'_, PyAny>,
        length: usize,
    ) -> PyResult<Request> {
        let with = (rank(source, self.size)?, like);
        messages::start_receive(py, (self.launch, self.index), with, length)
    }

    /// Returns the root's bytes on all other PEs.
    fn broadcast_bytes<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        root: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        objects::broadcast(py, (self.launch, self.index), data, rank(root, self.size)?)
    }

    /// Returns the bytes of all PEs on the root, or on all PEs if there is none, and where those of
    /// each PE end.
    #[pyo3(signature = (data, root))]
    fn gather_bytes<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        root: Option<i64>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Vec<usize>)>> {
        let root = root.map(|root| rank(root, self.size)).transpose()?;
        objects::gather(py, (self.launch, self.index), data, root)
    }

    /// Returns this PE's block of the root's bytes.
    fn scatter_bytes<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        lengths: Vec<usize>,
        root: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let root = rank(root, self.size)?;
        objects::scatter(py, (self.launch, self.index), (data, &lengths), root)
    }

    /// Sends bytes to a PE.
    fn send_bytes(&self, py: Python<'_>, data: &[u8], to: i64) -> PyResult<()> {
        objects::send(py, (self.launch, self.index), data, rank(to, self.size)?)
    }

    /// Receives bytes from a PE.
    fn receive_bytes<'py>(&self, py: Python<'py>, source: i64) -> PyResult<Bound<'py, PyAny>> {
        objects::receive(py, (self.launch, self.index), rank(source, self.size)?)
    }

    /// Progresses the pending calls.
    fn progress(&self, py: Python<'_>) -> PyResult<()> {
        call(py, self.launch, self.index, |team, _| team.progress())
    }

    /// Allocates symmetric memory of the type of `like`.
    fn symmetric(
        &self,
        py: Python<'_>,
        like: &Bound<'_, PyAny>,
        length: usize,
    ) -> PyResult<Memory> {
        memory::allocate(py, (self.launch, self.index), self.size, like, length)
    }

    /// Makes teams of the PEs with the same colour.
    fn split(&self, py: Python<'_>, color: Option<u32>, key: i64) -> PyResult<Option<Self>> {
        let index = call(py, self.launch, self.index, |team, running| {
            let Some(part) = team.split(color, key)? else { return Ok(None) };
            let mut teams = running.teams.borrow_mut();
            teams.push(part);
            Ok(Some(teams.len() - 1))
        })?;
        index.map(|index| Self::at(py, self.launch, index)).transpose()
    }

    /// Frees the team's memory.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        call(py, self.launch, self.index, |team, _| team.clone().free())
    }

    /// Limits the time of each later call of an attached process, or ends the limit. A call that
    /// takes longer raises `TimeoutError`, and the job fails.
    fn limit(&self, py: Python<'_>, seconds: Option<f64>) {
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        py.detach(|| lent::limit(self.launch, limit));
    }

    /// Fails the job for a reason, from any thread. A call that waits, on any PE, raises an error.
    fn fail(&self, py: Python<'_>, reason: &str) {
        py.detach(|| (self.fail)(reason));
    }

    fn __repr__(&self) -> String {
        format!("<PE {} of {}>", self.rank, self.size)
    }
}
