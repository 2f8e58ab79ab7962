//! What moves a PE's nonblocking calls on: the flights, and who polls them.
//!
//! A flight is a future that owns, or borrows from what outlives it, all that its call needs. The
//! PE polls all flights whenever it waits in any call, and now and then in others; a helper thread,
//! where there is one, polls them all the time that there are any. Both go through one lock, so one
//! at a time drives a flight.
//!
//! | who | when | if the other polls |
//! | --- | --- | --- |
//! | the PE | between polls of what it waits for | goes on waiting |
//! | the helper | while there are flights; sleeps otherwise | polls after it |
//!
//! A flight ends when it is complete, when its operator panics, or, in a job that has failed, when
//! it is dropped: then it revokes what it has lent, as a blocking call does. An operator may panic
//! when it is dropped, too: its flight is over all the same, and so are all others.

#![expect(unsafe_code, reason = "declares what flights must see to")]

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};

use crate::segment::Segment;

/// Scratch memories that are kept for later flights.
const KEPT: usize = 16;
/// Rounds without an end of a flight before the helper sleeps between rounds.
const ROUNDS_BEFORE_SLEEP: u32 = 2_000;
/// How long it sleeps then; a message does not wake it.
const NAP: Duration = Duration::from_micros(50);
/// How long it sleeps where there are no flights, unless one is launched, or all is over: it may
/// miss that while it begins.
const REST: Duration = Duration::from_millis(20);

/// What a thread panicked with.
pub type Panic = Box<dyn Any + Send>;

/// Why a PE that panicked with this has failed.
#[must_use]
pub fn panic_reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}

/// Drops what a program has made, and nobody asks for any more. It may panic: then that is lost,
/// and what it panics with, which may do so again, is never dropped.
pub fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        Box::leak(panic);
    }
}

/// A nonblocking call under way. Its fields are dropped in their order.
struct Flight {
    future: Pin<Box<dyn Future<Output = ()>>>,
    _ends: [Option<Ends>; 2],
}

/// A number of flights under way: all of a PE, or those of whoever waits for their end.
#[derive(Clone, Debug, Default)]
pub struct Flights(Arc<AtomicUsize>);

/// Counts a flight as ended, however it ends.
struct Ends(Flights);

impl Flights {
    /// Whether all have ended, and nothing that they borrowed is touched any more.
    #[inline(always)]
    #[must_use]
    pub fn are_over(&self) -> bool {
        self.0.load(Acquire) == 0 // pairs with the release in `Ends`
    }

    fn begin(&self) -> Ends {
        self.0.fetch_add(1, Relaxed);
        Ends(self.clone())
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let Self(Flights(count)) = self;
        count.fetch_sub(1, Release); // pairs with the acquire in `are_over`
    }
}

// SAFETY: whoever launches a flight promises that it may be driven from any thread.
unsafe impl Send for Flight {}

/// The flights of one PE.
#[derive(Default)]
pub struct Engine {
    flights: Mutex<VecDeque<Flight>>,
    under_way: Flights,
    helper: OnceLock<thread::Thread>,
    is_over: AtomicBool,
    scratch: Mutex<Vec<Segment>>,
}

impl Engine {
    fn flights(&self) -> MutexGuard<'_, VecDeque<Flight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are no flights.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.under_way.are_over()
    }

    /// Has a future driven to its end by whoever polls; it counts among `also` until it is gone.
    ///
    /// # Safety
    /// It may be polled and dropped on any thread, and what it borrows lives until it is gone: when
    /// [`Engine::poll`] has found it ready, and at the latest after [`Engine::clear`].
    pub(crate) unsafe fn launch<'f>(
        &self,
        future: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Flights>,
    ) {
        // SAFETY: a lifetime is all that changes, and the caller promises that what it stands for
        // outlives the flight.
        let future = unsafe {
            std::mem::transmute::<
                Pin<Box<dyn Future<Output = ()> + 'f>>,
                Pin<Box<dyn Future<Output = ()> + 'static>>,
            >(future)
        };
        let ends = [Some(self.under_way.begin()), also.map(Flights::begin)];
        self.flights().push_back(Flight { future, _ends: ends });
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// Polls each flight once, unless another thread does; says whether it did.
    ///
    /// # Errors
    /// The panic of an operator, whose flight is gone: the caller fails the job.
    #[cold]
    pub(crate) fn poll(&self) -> Result<bool, Panic> {
        let mut flights = match self.flights.try_lock() {
            Ok(flights) => flights,
            Err(TryLockError::Poisoned(flights)) => flights.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        catch_unwind(AssertUnwindSafe(|| Self::poll_all(&mut flights))).map(|()| true)
    }

    fn poll_all(flights: &mut VecDeque<Flight>) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..flights.len() {
            let Some(mut flight) = flights.pop_front() else { return };
            // If its operator panics, it is dropped, and the others stay.
            if flight.future.as_mut().poll(&mut context).is_pending() {
                flights.push_back(flight);
            }
        }
    }

    /// Drops all flights, in a job that has failed.
    #[cold]
    pub fn clear(&self) {
        let flights = std::mem::take(&mut *self.flights());
        flights.into_iter().for_each(discard); // without the lock
    }

    /// Helps until [`Engine::stop_helping`]; the panic of an operator is handed to `failed`.
    pub fn help(&self, failed: impl Fn(Panic)) {
        // A second helper would not be woken; there is none.
        let _ = self.helper.set(thread::current());
        let mut idle_rounds = 0;
        while !self.is_over.load(Acquire) {
            let before = self.under_way.0.load(Acquire);
            if before == 0 {
                thread::park_timeout(REST);
                continue;
            }
            let polled = catch_unwind(AssertUnwindSafe(|| Self::poll_all(&mut self.flights())));
            if let Err(panic) = polled {
                failed(panic);
            }
            idle_rounds =
                if self.under_way.0.load(Relaxed) == before { idle_rounds + 1 } else { 0 };
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

    /// Scratch memory of so many bytes, from an earlier flight if there is some.
    pub(crate) fn scratch(&self, bytes: usize) -> Segment {
        let kept = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Segment::reserve(bytes).expect("memory for partial results"))
    }

    /// Keeps the scratch memory of a flight that has ended.
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
