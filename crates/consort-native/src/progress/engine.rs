//! The driver of a PE's nonblocking calls.
//!
//! An operation is a future that owns everything that its call needs, or borrows it from a value
//! that outlives the future. The PE polls all operations whenever it waits in a call, and
//! occasionally in other calls. A helper thread, if there is one, polls them as long as there are
//! any. Both take the same lock, so only one thread at a time drives an operation.
//!
//! | thread | polls operations | if the other thread is polling |
//! | --- | --- | --- |
//! | the PE | between polls of its own wait | continues its wait |
//! | the helper | while there are any; sleeps otherwise | tries again |
//!
//! Neither waits for that lock. The thread that has it runs operators and drops values of the
//! program, and these may end the PE, or even the job and its helpers.
//!
//! An operation ends when it is complete, when its operator panics, or when it is dropped in a job
//! that has failed. Then it revokes its exposures, like a blocking call. An operator may also panic
//! when it is dropped. At that time its operation has already ended, and the others are not
//! affected.

#![expect(unsafe_code, reason = "declares requirements on operations")]

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    ptr,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};

use crate::{
    segment::{memory_error::MemoryError, origin::Origin, reservation::Segment},
    tally::{Counted, Tally},
};
use consort_machine::{
    panic::{Panic, discard},
    token::ProcessToken,
};

/// The name of scratch memory in errors.
pub(crate) const SCRATCH: &str = "partial results";

/// The number of segments of scratch memory that are kept for later operations.
const KEPT: usize = 16;
/// The number of rounds in which no operation ends before the helper sleeps between rounds.
const ROUNDS_BEFORE_SLEEP: u32 = 2_000;
/// How long the helper then sleeps. A message does not wake it.
const NAP: Duration = Duration::from_micros(50);
/// The longest sleep of the helper while there are no operations. A launch and the end of the job
/// wake it, but it may miss a wake-up while it is starting.
const REST: Duration = Duration::from_millis(20);

/// Returns an address that no other running thread has.
fn place() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| ptr::from_ref(place).addr())
}

/// A pending nonblocking call. Its fields are dropped in this order.
struct Operation {
    future: Pin<Box<dyn Future<Output = ()>>>,
    _counted: [Option<Counted>; 2],
}

// SAFETY: the caller of `launch` promises that any thread may drive an operation.
unsafe impl Send for Operation {}

/// The operations of one PE.
#[derive(Default)]
pub struct Engine {
    operations: Mutex<VecDeque<Operation>>,
    /// The [`place`] of the thread that polls the operations; 0 if there is none.
    polling: AtomicUsize,
    /// Whether the thread that polls the operations drops them afterwards.
    clears: AtomicBool,
    under_way: Tally,
    helper: OnceLock<thread::Thread>,
    is_over: AtomicBool,
    process: ProcessToken,
    scratch: Mutex<Vec<Segment>>,
}

impl Engine {
    fn operations(&self) -> MutexGuard<'_, VecDeque<Operation>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there are no operations.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.under_way.is_zero()
    }

    pub(crate) fn has_only(&self, operations: usize) -> bool {
        self.under_way.get() == operations
    }

    /// Adds a future to the operations. `also` counts the future until it is dropped.
    ///
    /// # Safety
    /// The future may be polled and dropped on any thread. What it borrows must live until it is
    /// dropped: when [`Engine::poll`] has found it ready, or at the latest in [`Engine::clear`].
    pub(crate) unsafe fn launch<'f>(
        &self,
        future: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Tally>,
    ) {
        // SAFETY: only a lifetime changes, and the caller promises that what is borrowed outlives
        // the operation.
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

    /// Polls each operation once, unless a thread is polling them already. Returns whether this
    /// thread did.
    ///
    /// # Errors
    /// The panic of an operator. Its operation is dropped. The caller must fail the job.
    #[cold]
    pub(crate) fn poll(&self) -> Result<bool, Panic> {
        let mut operations = match self.operations.try_lock() {
            Ok(operations) => operations,
            Err(TryLockError::Poisoned(operations)) => operations.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        self.polling.store(place(), Relaxed);
        let polled = catch_unwind(AssertUnwindSafe(|| Self::poll_all(&mut operations)));
        self.polling.store(0, Relaxed);
        drop(operations);
        if self.clears.swap(false, Relaxed) {
            self.clear();
        }
        polled.map(|()| true)
    }

    fn poll_all(operations: &mut VecDeque<Operation>) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..operations.len() {
            let Some(mut operation) = operations.pop_front() else { return };
            // If the operator panics, this operation is dropped, and the others stay.
            if operation.future.as_mut().poll(&mut context).is_pending() {
                operations.push_back(operation);
            }
        }
    }

    /// Drops all operations of a job that has failed. If an operator calls this, its thread drops
    /// them when it has polled them.
    #[cold]
    pub fn clear(&self) {
        if self.is_lost() {
            return;
        }
        // Relaxed: a thread finds its own place only if it has stored it.
        if self.polling.load(Relaxed) == place() {
            self.clears.store(true, Relaxed);
            return;
        }
        let operations = std::mem::take(&mut *self.operations());
        operations.into_iter().for_each(discard); // after the lock is released
    }

    /// Returns whether nothing can drive or drop the operations any more, because this is a child
    /// that was forked while the helper held their lock.
    pub fn is_lost(&self) -> bool {
        !self.process.is_current()
            && matches!(self.operations.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Polls operations until [`Engine::stop_helping`]. Passes the panic of an operator to
    /// `failed`.
    pub fn help(&self, failed: impl Fn(Panic)) {
        // There is only one helper; a second one would not be woken.
        let _ = self.helper.set(thread::current());
        let mut idle_rounds = 0;
        while !self.is_over.load(Acquire) {
            let before = self.under_way.get();
            if before == 0 {
                thread::park_timeout(REST);
                continue;
            }
            if let Err(panic) = self.poll() {
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

    /// Stops the helper thread, if there is one.
    pub fn stop_helping(&self) {
        self.is_over.store(true, Release); // pairs with the acquire in `help`
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// Returns scratch memory of `bytes`. Reuses that of an earlier operation if some is kept.
    ///
    /// # Errors
    /// When the system provides no memory.
    pub(crate) fn scratch(&self, bytes: usize) -> Result<Segment, Box<MemoryError>> {
        let kept = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| Segment::reserve(bytes, Origin::Private, SCRATCH), Ok)
    }

    /// Keeps the scratch memory of an operation that has ended.
    pub(crate) fn keep(&self, scratch: Segment) {
        // In a forked child the helper may hold the lock forever.
        if let Ok(mut kept) = self.scratch.try_lock()
            && kept.len() < KEPT
        {
            kept.push(scratch);
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}
