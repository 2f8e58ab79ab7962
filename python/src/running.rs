//! The PE of a thread, its teams, and its pending calls.
//!
//! Teams, requests and symmetric memory borrow from the PE, and stay on its thread. Python objects
//! cannot do this. So a Python object has two numbers: that of its launch, and its index here. The
//! thread that uses it looks up both. On another thread, or after the launch, they are invalid.

#![expect(unsafe_code, reason = "follows a pointer to the PE that this thread runs")]

use std::{
    cell::{Cell, RefCell},
    ptr,
};

use consort::{Pe, Rank, Team};
use pyo3::prelude::*;

use crate::errors::{Error, exception};

/// A pending call.
pub(crate) trait Pending {
    /// Returns whether the call is complete.
    fn test(&mut self) -> consort::Result<bool>;
    /// Waits for the call. Returns its result, if this PE gets one.
    fn wait(self: Box<Self>) -> consort::Result<Option<Box<dyn Result>>>;
}

/// A result that becomes an array.
pub(crate) trait Result: Send {
    /// Converts the result to an array.
    fn array<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// Memory with elements of some type. Slices of elements are passed as bytes.
pub(crate) trait Allocation {
    /// Copies elements to the part of a PE, from element `first` on.
    fn put(&self, to: Rank, first: usize, elements: &[u8]) -> consort::Result<()>;
    /// Copies elements from the part of a PE, from element `first` on.
    fn get(&self, from: Rank, first: usize, elements: &mut [u8]) -> consort::Result<()>;
    /// Orders earlier puts before later ones.
    fn fence(&self) -> consort::Result<()>;
    /// Waits until puts are complete.
    fn quiet(&self) -> consort::Result<()>;
}

/// The state of a PE while its program runs.
pub(crate) struct Running<'p> {
    /// The number of the launch, unique in the process.
    launch: u64,
    /// The world, and the teams that were made from it.
    pub(crate) teams: RefCell<Vec<Team<'p>>>,
    /// Nonblocking calls whose results have not been taken.
    pub(crate) requests: RefCell<Vec<Option<Box<dyn Pending + 'p>>>>,
    /// Symmetric memory, until it is dropped.
    pub(crate) memory: RefCell<Vec<Option<Box<dyn Allocation + 'p>>>>,
}

thread_local! {
    /// The PE that the thread runs; null if it runs none.
    static HERE: Cell<*const Running<'static>> = const { Cell::new(ptr::null()) };
}

/// Resets `HERE` to null when it is dropped.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        HERE.set(ptr::null());
    }
}

impl<'p> Running<'p> {
    /// Runs a program on this thread, as a PE of this launch.
    pub(crate) fn run<R>(launch: u64, pe: &'p Pe, program: impl FnOnce() -> R) -> R {
        let running = Running {
            launch,
            teams: RefCell::new(vec![pe.world()]),
            requests: RefCell::default(),
            memory: RefCell::default(),
        };
        HERE.set(ptr::from_ref(&running).cast());
        let _leaves = Leaves;
        program()
    }
}

/// Calls `access` with the PE that this thread runs.
///
/// # Errors
/// If the thread runs no PE of this launch, or if `access` fails.
pub(crate) fn here<R>(
    launch: u64,
    access: impl for<'p> FnOnce(&Running<'p>) -> PyResult<R>,
) -> PyResult<R> {
    let here = HERE.get();
    // SAFETY: the pointer is null unless `Running::run` of this thread is in a frame below this
    // one. That frame owns the value, and only shares it by reference. The thread cannot leave that
    // frame before `access` has returned. `access` must accept any lifetime. So nothing that it
    // returns or stores elsewhere borrows from the PE, and 'static is as good as the true lifetime.
    let running = unsafe { here.as_ref() };
    match running.filter(|running| running.launch == launch) {
        Some(running) => access(running),
        None => Err(Error::new_err(
            "only a PE's thread may use the PE's teams, requests and symmetric memory, and not \
             after launch() has returned",
        )),
    }
}

/// Makes a call of a team of this thread, with the interpreter's lock released.
///
/// # Errors
/// Those of [`here`], and those of the call.
pub(crate) fn call<R: Send>(
    py: Python<'_>,
    launch: u64,
    team: usize,
    make: impl for<'p> FnOnce(&Team<'p>, &Running<'p>) -> consort::Result<R> + Send,
) -> PyResult<R> {
    let made = py.detach(|| {
        here(launch, |running| {
            let team = running.teams.borrow()[team];
            Ok(make(&team, running))
        })
    });
    made?.map_err(|error| exception(&error))
}
