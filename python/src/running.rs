//! The PE of a thread, its teams, and its pending calls.
//!
//! Teams, requests and symmetric memory stay on the PE's thread. Python objects do not. So a Python
//! object has two numbers: that of its launch, and its index here. The thread that uses it looks up
//! both (`dispatch`). On a thread that may not run the PE, or after the launch, they are invalid.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use consort::{Pe, Rank, Team, bindings::failing};
use pyo3::prelude::*;

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
    /// Returns the address of element `first` of a PE.
    fn address(&self, pe: Rank, first: usize) -> consort::Result<usize>;
    /// Returns an object that keeps the memory, also after the job has ended.
    fn keep(&self) -> Arc<dyn Any + Send + Sync>;
    /// Orders earlier puts before later ones.
    fn fence(&self) -> consort::Result<()>;
    /// Waits until puts are complete.
    fn quiet(&self) -> consort::Result<()>;
}

/// Fails the PE's job for a reason, from any thread.
pub(crate) type Fail = Arc<dyn Fn(&str) + Send + Sync>;

/// The name of calls that do not name themselves.
pub(crate) const ANY_CALL: &str = "a call";

/// The state of a PE while its program runs.
pub(crate) struct Running {
    /// The number of the launch, unique in the process.
    launch: u64,
    pub(crate) fail: Fail,
    /// The name of the call that the PE makes.
    pub(crate) call: Cell<&'static str>,
    /// The world, and the teams that were made from it.
    pub(crate) teams: RefCell<Vec<Team>>,
    /// Nonblocking calls whose results have not been taken.
    pub(crate) requests: RefCell<Vec<Option<Box<dyn Pending>>>>,
    /// Symmetric memory, until it is dropped.
    pub(crate) memory: RefCell<Vec<Option<Box<dyn Allocation>>>>,
}

thread_local! {
    /// The PE that the thread runs, if it runs one.
    static HERE: RefCell<Option<Rc<Running>>> = const { RefCell::new(None) };
}

/// Drops the state of the PE that the thread runs when this is dropped.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        drop(HERE.take());
    }
}

impl Running {
    /// Returns the state of a PE at the beginning of its program.
    pub(crate) fn new(launch: u64, pe: &Pe) -> Self {
        Self {
            launch,
            fail: Arc::new(failing(pe)),
            call: Cell::new(ANY_CALL),
            teams: RefCell::new(vec![pe.world().clone()]),
            requests: RefCell::default(),
            memory: RefCell::default(),
        }
    }

    /// Runs a program on this thread, as a PE of this launch.
    pub(crate) fn run<R>(launch: u64, pe: &Pe, program: impl FnOnce() -> R) -> R {
        HERE.set(Some(Rc::new(Self::new(launch, pe))));
        let _leaves = Leaves;
        program()
    }
}

/// An entry of a PE's state whose Python object is gone.
pub(crate) enum Dropped {
    Request(usize),
    Memory(usize),
}

impl Dropped {
    /// Drops the entry of this PE.
    pub(crate) fn drop_in(self, running: &Running) {
        match self {
            Self::Request(index) => drop(taken(&running.requests, index)),
            Self::Memory(index) => drop(taken(&running.memory, index)),
        }
    }
}

/// Takes an entry, unless its table is in use.
fn taken<T>(all: &RefCell<Vec<Option<T>>>, index: usize) -> Option<T> {
    all.try_borrow_mut().ok().and_then(|mut all| all[index].take())
}

/// Returns the PE that this thread runs, if it is of this launch.
pub(crate) fn own(launch: u64) -> Option<Rc<Running>> {
    HERE.with_borrow(Option::clone).filter(|running| running.launch == launch)
}
