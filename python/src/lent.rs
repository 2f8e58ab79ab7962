//! PEs that their threads lend to the other threads of the process.
//!
//! A call runs on the thread that makes it, so a short call does not wait for another thread. While
//! the call waits, its thread checks for signals and for the time limit.

#![expect(unsafe_code, reason = "a PE continues on another thread")]

use std::{
    cell::{Cell, RefCell},
    mem,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use consort::{Pe, bindings::while_waiting};
use pyo3::{exceptions::PyTimeoutError, prelude::*};

use crate::running::{ANY_CALL, Dropped, Running};

/// The interval at which a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// The lent PEs, by the numbers of their launches. A process has few.
static LENT: Mutex<Vec<(u64, Arc<Lent>)>> = Mutex::new(Vec::new());

/// A PE that one thread at a time runs.
struct Lent {
    /// `None` when its own thread has taken it back.
    pe: Mutex<Option<Shared>>,
    /// The entries to drop before the next call.
    dropped: Mutex<Vec<Dropped>>,
    /// How long a later call may take.
    limit: Mutex<Option<Duration>>,
}

/// The state of a PE, which changes threads.
struct Shared {
    running: Rc<Running>,
    watch: Rc<Watch>,
    /// The PE has only a weak reference to it.
    _callback: Rc<dyn Fn()>,
}

// SAFETY: a PE is bound to one thread by reference counts and cells that its handles share. All of
// its handles and the callback are inside, except for the `Pe` of its own thread, which does not
// use it before it has taken this back. So one thread at a time uses them: the one that has locked
// the mutex around this, and what it has done happens before what the next one does.
unsafe impl Send for Shared {}

/// The time limit of a call, and the exception of a signal.
struct Watch {
    running: Rc<Running>,
    begun: Cell<Instant>,
    looked: Cell<Instant>,
    /// How long the call may take.
    limit: Cell<Option<Duration>>,
    /// The exception that has ended the call.
    raised: RefCell<Option<PyErr>>,
}

impl Watch {
    /// Fails the job if the call takes too long, or if a signal raises an exception.
    fn look(&self) {
        if self.raised.borrow().is_some() {
            return;
        }
        let now = Instant::now();
        let limit = self.limit.get().filter(|limit| now - self.begun.get() >= *limit);
        if let Some(limit) = limit {
            let call = self.running.call.get();
            let reason = format!("{call} took longer than {} s", limit.as_secs_f64());
            self.end(PyTimeoutError::new_err(reason.clone()), &reason);
        } else if now - self.looked.get() >= LOOK {
            self.looked.set(now);
            // `None` while the interpreter ends.
            let raised = Python::try_attach(|py| {
                let error = py.check_signals().err()?;
                let name = error
                    .get_type(py)
                    .name()
                    .map_or_else(|_| "?".to_owned(), |name| name.to_string());
                Some((error, name))
            });
            if let Some((error, name)) = raised.flatten() {
                self.end(error, &name);
            }
        }
    }

    fn end(&self, error: PyErr, reason: &str) {
        self.raised.replace(Some(error));
        (self.running.fail)(reason);
    }
}

/// Takes a PE back when it is dropped, and so waits until no thread runs it.
struct TakesBack(u64);

impl Drop for TakesBack {
    fn drop(&mut self) {
        let lent = {
            let mut all = lock(&LENT);
            let at = all.iter().position(|(launch, _)| *launch == self.0);
            at.map(|at| all.swap_remove(at).1)
        };
        if let Some(lent) = lent {
            let pe = lock(&lent.pe).take();
            drop(pe);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_launch(all: MutexGuard<'_, Vec<(u64, Arc<Lent>)>>, launch: u64) -> Option<Arc<Lent>> {
    all.iter().find(|(one, _)| *one == launch).map(|(_, lent)| Arc::clone(lent))
}

/// Runs a program on the thread of a PE. Meanwhile this thread and others run the PE in turn.
pub(crate) fn run<R>(launch: u64, pe: &Pe, program: impl FnOnce() -> R) -> R {
    let _taken_back = lend(launch, pe, Running::new(launch, pe));
    program()
}

/// Lends the PE of the calling thread, until the result is dropped.
fn lend(launch: u64, pe: &Pe, running: Running) -> TakesBack {
    let now = Instant::now();
    let running = Rc::new(running);
    let watch = Rc::new(Watch {
        running: Rc::clone(&running),
        begun: Cell::new(now),
        looked: Cell::new(now),
        limit: Cell::default(),
        raised: RefCell::default(),
    });
    let looks = Rc::clone(&watch);
    let callback: Rc<dyn Fn()> = Rc::new(move || looks.look());
    while_waiting(pe, &callback);
    let pe = Mutex::new(Some(Shared { running, watch, _callback: callback }));
    let lent = Lent { pe, dropped: Mutex::default(), limit: Mutex::default() };
    lock(&LENT).push((launch, Arc::new(lent)));
    TakesBack(launch)
}

/// Waits until no other thread runs the lent PE of this launch, and calls `access` with it. Returns
/// `None` if no such PE is lent. The caller does not hold the interpreter's lock.
///
/// # Errors
/// `TimeoutError` if a wait took too long, and an exception of a signal. The job has then failed.
pub(crate) fn with<R>(launch: u64, access: impl FnOnce(&Running) -> R) -> Option<PyResult<R>> {
    let lent = of_launch(lock(&LENT), launch)?;
    let pe = lock(&lent.pe);
    let Shared { running, watch, .. } = pe.as_ref()?;
    let dropped = mem::take(&mut *lock(&lent.dropped));
    dropped.into_iter().for_each(|one| one.drop_in(running));
    let now = Instant::now();
    watch.begun.set(now);
    watch.looked.set(now);
    watch.limit.set(*lock(&lent.limit));
    running.call.set(ANY_CALL);
    let result = access(running);
    Some(watch.raised.take().map_or(Ok(result), Err))
}

/// Limits the time of each later call on the lent PE of this launch, or ends the limit. A call that
/// takes longer fails the job.
pub(crate) fn limit(launch: u64, limit: Option<Duration>) {
    if let Some(lent) = of_launch(lock(&LENT), launch) {
        *lock(&lent.limit) = limit;
    }
}

/// Drops an entry of the lent PE of this launch before its next call. In a forked child, another
/// thread of the parent may have had a lock: the entry is then kept.
pub(crate) fn drop_later(launch: u64, dropped: Dropped) {
    if let Some(lent) = try_lock(&LENT).and_then(|all| of_launch(all, launch))
        && let Some(mut all) = try_lock(&lent.dropped)
    {
        all.push(dropped);
    }
}

/// Locks a mutex that threads hold only for a few instructions. Returns `None` if it stays locked.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    const TIMES: u32 = 1000;
    (0..TIMES).find_map(|_| {
        mutex.try_lock().ok().or_else(|| {
            thread::yield_now();
            None
        })
    })
}
