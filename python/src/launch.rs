//! Runs a function on the PEs of a job in this process: threads, or this process itself.
//!
//! The job runs in a separate thread, so that the calling thread can check for signals. Ctrl-C
//! raises `KeyboardInterrupt` in the PEs that run Python code. The calls of the other PEs then
//! fail. After a second Ctrl-C, the caller does not wait for the PEs.

#![expect(unsafe_code, reason = "raises an exception in another thread")]

use std::{
    ffi::c_ulong,
    fmt, iter,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use consort::{Job, JobBuilder, Rank, Results};
use pyo3::{
    exceptions::PyKeyboardInterrupt,
    ffi::PyThreadState_SetAsyncExc,
    intern,
    prelude::*,
    types::{PyList, PyTuple},
};

use crate::{
    errors::{self, exception},
    lent,
    running::Running,
    team::Team,
};

/// The interval at which the caller checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// The number of the next launch.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The reason why a PE's program ended early.
enum Cause {
    /// An exception, and its text.
    Raised(PyErr, String),
    /// An error of the launch.
    Launch(consort::Error),
}

impl From<consort::Error> for Cause {
    fn from(error: consort::Error) -> Self {
        Self::Launch(error)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(_, text) => f.write_str(text),
            Self::Launch(error) => error.fmt(f),
        }
    }
}

/// The program of a launch, and what its PEs report to the caller.
struct Program {
    /// The number of the launch, unique in the process.
    launch: u64,
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
    reports: Mutex<Reports>,
}

#[derive(Default)]
struct Reports {
    /// The threads that run the program, as identified by Python.
    threads: Vec<c_ulong>,
    /// The exceptions of the PEs, with their ranks.
    raised: Vec<(Rank, PyErr)>,
}

/// Returns the number of cores that this process may use.
#[pyfunction]
pub(crate) fn cores() -> usize {
    consort::tune::Algorithms::here().cores()
}

/// Runs `function(team, *arguments)` on `pes` PEs, and returns their results by rank.
#[pyfunction]
pub(crate) fn launch<'py>(
    function: Bound<'py, PyAny>,
    pes: usize,
    arguments: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyList>> {
    let py = function.py();
    PyList::new(py, run_job(Job::threads(pes), pes, function, arguments)?)
}

/// Runs `function(team, *arguments)` on the PEs of this process in a job of `pes` PEs, and returns
/// their results by rank.
pub(crate) fn run_job(
    job: JobBuilder,
    pes: usize,
    function: Bound<'_, PyAny>,
    arguments: Bound<'_, PyTuple>,
) -> PyResult<Vec<Py<PyAny>>> {
    let py = function.py();
    let program = Arc::new(Program::new(function, arguments));
    let (send, mut receive) = sync_channel(1);
    let launched = Arc::clone(&program);
    let launching = move || {
        let ended = launched.run(job, false);
        // The caller may have stopped waiting.
        drop(send.send(ended));
    };
    let started = thread::Builder::new().name("consort launch".to_owned()).spawn(launching);
    started.map_err(|error| errors::Error::new_err(format!("cannot start a thread: {error}")))?;
    let mut is_interrupted = false;
    let ended = loop {
        let receive = &mut receive;
        match py.detach(move || receive.recv_timeout(LOOK)) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::Error::new_err("the launch panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals() {
            if is_interrupted {
                return Err(interrupt);
            }
            is_interrupted = true;
            program.interrupt(py);
        }
    };
    if is_interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    py.check_signals()?; // a Ctrl-C while the last PE ended
    program.outcome(py, ended, pes)
}

/// As [`run_job`], for a job whose only PE in this process runs on the calling thread, which lends
/// it to the other threads. Signals are left to the main thread.
pub(crate) fn run_job_here(
    job: JobBuilder,
    pes: usize,
    function: Bound<'_, PyAny>,
    arguments: Bound<'_, PyTuple>,
) -> PyResult<Vec<Py<PyAny>>> {
    let py = function.py();
    let program = Program::new(function, arguments);
    let ended = py.detach(|| program.run(job, true));
    program.outcome(py, ended, pes)
}

impl Program {
    fn new(function: Bound<'_, PyAny>, arguments: Bound<'_, PyTuple>) -> Self {
        Self {
            launch: NEXT.fetch_add(1, Ordering::Relaxed),
            function: function.unbind(),
            arguments: arguments.unbind(),
            reports: Mutex::default(),
        }
    }

    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the PEs of this process, and waits until those of all processes have ended.
    fn run(&self, job: JobBuilder, lends: bool) -> Result<Results<Py<PyAny>>, Cause> {
        job.named("consort").try_run(|pe| {
            let rank = pe.world().rank();
            let program = || self.run_as(rank);
            if lends {
                lent::run(self.launch, pe, program)
            } else {
                Running::run(self.launch, pe, program)
            }
        })
    }

    /// Runs the function as one PE.
    fn run_as(&self, rank: Rank) -> Result<Py<PyAny>, Cause> {
        Python::attach(|py| {
            let mut thread = None;
            let returned = Team::world(py, self.launch).and_then(|team| {
                let number =
                    py.import(intern!(py, "threading"))?.call_method0("get_ident")?.extract()?;
                thread = Some(number);
                self.reports().threads.push(number);
                let team = Bound::new(py, team)?.into_any();
                let words = iter::once(team).chain(self.arguments.bind(py).iter());
                self.function.bind(py).call1(PyTuple::new(py, words.collect::<Vec<_>>())?)
            });
            // Later another thread may get this thread's identifier.
            self.reports().threads.retain(|one| Some(*one) != thread);
            returned.map(Bound::unbind).map_err(|error| {
                self.reports().raised.push((rank, error.clone_ref(py)));
                let text = error.to_string();
                Cause::Raised(error, text)
            })
        })
    }

    /// Raises `KeyboardInterrupt` in the threads that run the program.
    fn interrupt(&self, py: Python<'_>) {
        let exception = py.get_type::<PyKeyboardInterrupt>();
        for &thread in &self.reports().threads {
            // SAFETY: this thread is attached to the interpreter. For a thread that has ended, the
            // interpreter finds no state and does nothing.
            unsafe { PyThreadState_SetAsyncExc(thread.cast_signed(), exception.as_ptr()) };
        }
    }

    /// Returns the results by rank, or the exception of a failed launch.
    fn outcome(
        &self,
        py: Python<'_>,
        ended: Result<Results<Py<PyAny>>, Cause>,
        pes: usize,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let raised = || std::mem::take(&mut self.reports().raised);
        ended.map(Results::into_vec).map_err(|cause| failure(py, cause, raised(), pes))
    }
}

/// Returns the exception of a failed launch, with the rank of the PE that failed first: that PE's
/// exception; or if it is in another process, one of this process.
fn failure(py: Python<'_>, cause: Cause, mut raised: Vec<(Rank, PyErr)>, pes: usize) -> PyErr {
    raised.sort_by_key(|(rank, _)| *rank);
    let (raised_by, failed, error) = match cause {
        Cause::Raised(error, _) => {
            let is_same = |(_, one): &(Rank, PyErr)| one.value(py).is(error.value(py));
            let rank = raised.iter().find(|one| is_same(one)).map(|(rank, _)| *rank);
            (rank, rank, error)
        }
        // All PEs that disagree have raised it. The traceback of one shows the place.
        Cause::Launch(error) => {
            let failed = error.failed_pe().map(|(rank, _)| rank);
            let text = errors::message(&error);
            let of_it = |one: &PyErr| one.value(py).str().is_ok_and(|own| own == *text);
            match raised.into_iter().find(|(_, one)| of_it(one)) {
                Some((rank, one)) => (Some(rank), failed.or(Some(rank)), one),
                None => (None, failed, exception(&error)),
            }
        }
    };
    // An exception that accepts neither is raised without them.
    if let Some(rank) = raised_by {
        let note = format!("raised by PE {rank} of {pes}");
        drop(error.value(py).call_method1("add_note", (note,)));
    }
    if let Some(rank) = failed {
        drop(error.value(py).setattr("pe_rank", rank.0));
    }
    error
}
