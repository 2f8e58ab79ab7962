//! What moves a PE's nonblocking calls on: the operations, and who polls them.
//!
//! An operation is a future that owns, or borrows from what outlives it, all that its call needs.
//! The PE polls all operations whenever it waits in any call, and now and then in others; a helper
//! thread, where there is one, polls them all the time that there are any. Both go through one
//! lock, so one at a time drives an operation.
//!
//! | who | when | if the other polls |
//! | --- | --- | --- |
//! | the PE | between polls of what it waits for | goes on waiting |
//! | the helper | while there are operations; sleeps otherwise | polls after it |
//!
//! An operation ends when it is complete, when its operator panics, or, in a job that has failed,
//! when it is dropped: then it revokes what it has exposed, as a blocking call does. An operator
//! may panic when it is dropped, too: its operation is over all the same, and so are all others.

#![expect(unsafe_code, reason = "declares what operations must see to")]

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};

use crate::{
    launch::panic::{Panic, discard},
    segment::{origin::Origin, reservation::Segment},
    tally::{Counted, Tally},
};

/// Scratch memories that are kept for later operations.
const KEPT: usize = 16;
/// Rounds without an end of an operation before the helper sleeps between rounds.
const ROUNDS_BEFORE_SLEEP: u32 = 2_000;
/// How long it sleeps then; a message does not wake it.
const NAP: Duration = Duration::from_micros(50);
/// How long it sleeps where there are no operations, unless one is launched, or all is over: it may
/// miss that while it begins.
const REST: Duration = Duration::from_millis(20);

/// A nonblocking call under way. Its fields are dropped in their order.
struct Operation {
    future: Pin<Box<dyn Future<Output = ()>>>,
    _counted: [Option<Counted>; 2],
}

// SAFETY: whoever launches an operation promises that it may be driven from any thread.
unsafe impl Send for Operation {}

/// The operations of one PE.
#[derive(Default)]
pub struct Engine {
    operations: Mutex<VecDeque<Operation>>,
    under_way: Tally,
    helper: OnceLock<thread::Thread>,
    is_over: AtomicBool,
    scratch: Mutex<Vec<Segment>>,
}

impl Engine {
    fn operations(&self) -> MutexGuard<'_, VecDeque<Operation>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are no operations.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.under_way.is_zero()
    }

    /// Has a future driven to its end by whoever polls; it counts among `also` until it is gone.
    ///
    /// # Safety
    /// It may be polled and dropped on any thread, and what it borrows lives until it is gone: when
    /// [`Engine::poll`] has found it ready, and at the latest after [`Engine::clear`].
    pub(crate) unsafe fn launch<'f>(
        &self,
        future: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Tally>,
    ) {
        // SAFETY: a lifetime is all that changes, and the caller promises that what it stands for
        // outlives the operation.
        let future = unsafe {
            std::mem::transmute::<
                Pin<Box<dyn Future<Output = ()> + 'f>>,
                Pin<Box<dyn Future<Output = ()> + 'static>>,
            >(future)
        };
        let counted = [Some(self.under_way.count()), also.map(Tally::count)];
        self.operations().push_back(Operation { future, _counted: counted });
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// Polls each operation once, unless another thread does; says whether it did.
    ///
    /// # Errors
    /// The panic of an operator, whose operation is gone: the caller fails the job.
    #[cold]
    pub(crate) fn poll(&self) -> Result<bool, Panic> {
        let mut operations = match self.operations.try_lock() {
            Ok(operations) => operations,
            Err(TryLockError::Poisoned(operations)) => operations.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        catch_unwind(AssertUnwindSafe(|| Self::poll_all(&mut operations))).map(|()| true)
    }

    fn poll_all(operations: &mut VecDeque<Operation>) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..operations.len() {
            let Some(mut operation) = operations.pop_front() else { return };
            // If its operator panics, it is dropped, and the others stay.
            if operation.future.as_mut().poll(&mut context).is_pending() {
                operations.push_back(operation);
            }
        }
    }

    /// Drops all operations, in a job that has failed.
    #[cold]
    pub fn clear(&self) {
        let operations = std::mem::take(&mut *self.operations());
        operations.into_iter().for_each(discard); // without the lock
    }

    /// Helps until [`Engine::stop_helping`]; the panic of an operator is handed to `failed`.
    pub fn help(&self, failed: impl Fn(Panic)) {
        // A second helper would not be woken; there is none.
        let _ = self.helper.set(thread::current());
        let mut idle_rounds = 0;
        while !self.is_over.load(Acquire) {
            let before = self.under_way.get();
            if before == 0 {
                thread::park_timeout(REST);
                continue;
            }
            let polled = catch_unwind(AssertUnwindSafe(|| Self::poll_all(&mut self.operations())));
            if let Err(panic) = polled {
                failed(panic);
            }
            idle_rounds = if self.under_way.get() == before { idle_rounds + 1 } else { 0 };
            if idle_rounds < ROUNDS_BEFORE_SLEEP {
                thread::yield_now();
            } else {
                thread::sleep(NAP);
            }
        }
    }

    /// Has the helper end, if there is one.
    pub fn stop_helping(&self) {
        self.is_over.store(true, Release); // pairs with the acquire in `help`
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// Scratch memory of so many bytes, from an earlier operation if there is some.
    pub(crate) fn scratch(&self, bytes: usize) -> Segment {
        let kept = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| {
            Segment::reserve(bytes, Origin::Private).expect("memory for partial results")
        })
    }

    /// Keeps the scratch memory of an operation that has ended.
    pub(crate) fn keep(&self, scratch: Segment) {
        let mut kept = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(scratch);
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}
