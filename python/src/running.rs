//! The PE that a thread runs, its teams, and what it has started.
//!
//! Teams, requests and symmetric memory borrow from the PE, and stay on its thread. Objects of
//! Python do neither, so they are numbers: of the launch, and of the place here. A number is looked
//! up by the thread that uses it, and means nothing to another one or after the launch.

#![expect(unsafe_code, reason = "finds the PE that a frame below on the same thread borrows")]

use std::{
    cell::{Cell, RefCell},
    ptr,
};

use consort::{Pe, Rank, Team};
use pyo3::prelude::*;

use crate::errors::{Error, exception};

/// A call that is under way.
pub(crate) trait Pending {
    /// Whether it is complete.
    fn test(&mut self) -> consort::Result<bool>;
    /// Its result, where this PE gets one.
    fn wait(self: Box<Self>) -> consort::Result<Option<Box<dyn Result>>>;
}

/// A result that becomes an array.
pub(crate) trait Result: Send {
    /// The array.
    fn array<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// Memory with elements of some type, of which slices are passed as bytes.
pub(crate) trait Allocation {
    /// Copies elements to the part of a PE, from element `first` on.
    fn put(&self, to: Rank, first: usize, elements: &[u8]) -> consort::Result<()>;
    /// Copies elements of the part of a PE, from element `first` on.
    fn get(&self, from: Rank, first: usize, elements: &mut [u8]) -> consort::Result<()>;
    /// Keeps the order of puts before and after.
    fn fence(&self) -> consort::Result<()>;
    /// Waits until puts are complete.
    fn quiet(&self) -> consort::Result<()>;
}

/// What a PE has while its program runs.
pub(crate) struct Running<'p> {
    /// The number of the launch, of all of the process.
    launch: u64,
    /// The world, and the teams that were made of it.
    pub(crate) teams: RefCell<Vec<Team<'p>>>,
    /// Nonblocking calls that nobody has waited for.
    pub(crate) requests: RefCell<Vec<Option<Box<dyn Pending + 'p>>>>,
    /// Symmetric memory, until it is dropped.
    pub(crate) memory: RefCell<Vec<Option<Box<dyn Allocation + 'p>>>>,
}

thread_local! {
    /// What the thread runs; null if that is nothing.
    static HERE: Cell<*const Running<'static>> = const { Cell::new(ptr::null()) };
}

/// Sets what the thread runs back to nothing when it is dropped.
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

/// Does something with what this thread runs.
///
/// # Errors
/// When the thread runs no PE of this launch, and what `access` returns.
pub(crate) fn here<R>(
    launch: u64,
    access: impl for<'p> FnOnce(&Running<'p>) -> PyResult<R>,
) -> PyResult<R> {
    let here = HERE.get();
    // SAFETY: the pointer is not null only while `Running::run` of this thread, in a frame below
    // this one, keeps what it points to and shares it by reference alone. The thread cannot leave
    // that frame before `access` has returned. `access` is for any lifetime, so nothing that it
    // returns or keeps elsewhere borrows from the PE, and it cannot tell the lifetime from 'static.
    let running = unsafe { here.as_ref() };
    match running.filter(|running| running.launch == launch) {
        Some(running) => access(running),
        None => Err(Error::new_err(
            "a PE's team, its requests and its symmetric memory are used by that PE's thread \
             alone, and not after launch() has returned",
        )),
    }
}

/// Makes a call of a team of this thread, with the interpreter's lock given back.
///
/// # Errors
/// As [`here`], and the call's.
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
