//! Runs a function on this process, which becomes a PE of a job of processes.

use std::time::Duration;

use consort::{Job, Rank, Rendezvous};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::{
    errors::{exception, rank},
    launch::{run_job, run_job_here},
};

/// Runs `function(team, *arguments)` on this process as PE `rank` of `size`, and returns its
/// result. The processes find each other by a name, by an address, by a descriptor of the same
/// file, by a function that exchanges bytes, or, without any of these, by the variables of their
/// launcher. They wait for each other for `timeout` seconds.
///
/// The function runs on a new thread while this one looks for signals; or, if `here`, on this
/// thread, which runs no PE yet, and any thread may make the PE's calls.
#[pyfunction]
#[pyo3(signature = (
    function, arguments, rank, size, name, address, descriptor, all_gather, timeout, here
))]
#[expect(clippy::too_many_arguments, reason = "those of the Python function")]
pub(crate) fn attach(
    function: Bound<'_, PyAny>,
    arguments: Bound<'_, PyTuple>,
    rank: Option<i64>,
    size: Option<i64>,
    name: Option<String>,
    address: Option<String>,
    descriptor: Option<Bound<'_, PyAny>>,
    all_gather: Option<Py<PyAny>>,
    timeout: f64,
    here: bool,
) -> PyResult<Py<PyAny>> {
    let descriptor = descriptor.map(|one| number_of(&one)).transpose()?;
    let ways = [
        name.map(Rendezvous::name),
        address.map(Rendezvous::address),
        descriptor.map(Rendezvous::descriptor),
        all_gather.map(exchange),
    ];
    let mut ways = ways.into_iter().flatten();
    let (rank, size, rendezvous) = match (rank, size, ways.next(), ways.next()) {
        (Some(rank), Some(size), Some(way), None) => place(rank, size, way)?,
        (None, None, None, None) => {
            let found = Rendezvous::environment().map_err(|error| exception(&error))?;
            found.ok_or_else(|| PyValueError::new_err(NO_LAUNCHER))?
        }
        _ => return Err(PyValueError::new_err(INCOMPLETE)),
    };
    let limit = match Duration::try_from_secs_f64(timeout) {
        Ok(limit) => limit,
        Err(_) if timeout > 0.0 => Duration::MAX,
        Err(_) => {
            let reason = format!("invalid timeout {timeout}: use a number of seconds");
            return Err(PyValueError::new_err(reason));
        }
    };
    let job = Job::processes(rank, size, rendezvous.timeout(limit));
    let run = if here { run_job_here } else { run_job };
    let mut results = run(job, size, function, arguments)?;
    Ok(results.remove(0))
}

const NO_LAUNCHER: &str = "neither torchrun nor srun has started this process: pass its rank, the \
                           number of processes, and one of name, address, descriptor and all_gather";
const INCOMPLETE: &str = "attach needs a rank, a size, and one of name, address, descriptor and \
                          all_gather; or none of them in a process of torchrun or srun";

/// Returns the number of a descriptor: the argument, or the result of its `fileno()`.
fn number_of(descriptor: &Bound<'_, PyAny>) -> PyResult<i32> {
    if let Ok(number) = descriptor.extract() {
        return Ok(number);
    }
    let Ok(fileno) = descriptor.getattr("fileno") else {
        let kind = descriptor.get_type();
        let reason = format!("descriptor must be a number, or a file, not {kind}");
        return Err(PyTypeError::new_err(reason));
    };
    fileno.call0()?.extract()
}

/// Returns the PE that the caller has named.
fn place(number: i64, size: i64, rendezvous: Rendezvous) -> PyResult<(Rank, usize, Rendezvous)> {
    let size = usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(|| {
        PyValueError::new_err(format!("invalid number of PEs {size}: use 1 or more"))
    })?;
    Ok((rank(number, size)?, size, rendezvous))
}

/// Returns a rendezvous by a function that exchanges bytes.
fn exchange(all_gather: Py<PyAny>) -> Rendezvous {
    Rendezvous::all_gather(move |own| {
        Python::attach(|py| {
            let all = all_gather.bind(py).call1((PyBytes::new(py, own),))?;
            let all = all.try_iter()?.map(|one| one?.extract());
            all.collect::<PyResult<Vec<Vec<u8>>>>()
        })
    })
}
