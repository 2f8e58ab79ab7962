//! Closures as requests: a word with the function that executes the closure, and a word with the
//! closure's address.

#![expect(unsafe_code, reason = "passes closures between threads as words")]

use std::{
    any::Any,
    cell::{Cell, UnsafeCell},
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use consort_machine::{Machine, Word, at_once, discard};

use crate::{
    delegation::{Backlog, Service},
    machine::MACHINE,
};

pub(crate) const POISONED: &str = "the data is poisoned: a closure panicked while it used the \
                                   data; call `clear_poison` to use the data again";

/// Data that one closure at a time uses.
pub(crate) struct SharedData<T> {
    data: UnsafeCell<T>,
    /// Whether a closure that panics poisons the data.
    pub(crate) poisons: AtomicBool,
    poisoned: Word,
    /// Closures for which no thread waits.
    pub(crate) backlog: Backlog,
    /// 1 while a request for the backlog is on its way, which executes every closure that is pushed
    /// before this is 0 again.
    is_requested: Word,
}

/// A closure that a thread executes, for itself or for a thread that waits for it.
pub(crate) struct Frame {
    /// Identifies the data that the closure uses. The address of the data is not enough, because
    /// data nested in it may have the same address.
    poisoned: *const Word,
    /// The closure that waits for this one.
    above: *const Frame,
}

thread_local! {
    /// The closure that this thread executes now.
    static FRAME: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Returns the frame of the closure that this thread executes, or null. A request that the thread
/// waits for carries it.
#[inline]
pub(crate) fn frame() -> *const Frame {
    FRAME.get()
}

/// Executes a request. Takes the data, the closure's address and, for a detached closure, the frame
/// in which to execute it.
pub(crate) type Execute<T> = unsafe fn(&SharedData<T>, *mut (), *const Frame);

/// A closure in flight.
pub(crate) struct ClosureCall<F, R>(UnsafeCell<CallState<F, R>>);

struct CallState<F, R> {
    closure: Option<F>,
    /// The closure that waits for this one.
    above: *const Frame,
    /// The result or the panic of the closure; `None` if it was refused.
    result: Option<Result<R, Box<dyn Any + Send>>>,
}

impl<T> SharedData<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self {
            data: UnsafeCell::new(data),
            poisons: AtomicBool::new(false),
            poisoned: Word::new(0),
            backlog: Backlog::new(),
            is_requested: Word::new(0),
        }
    }

    /// Notes that a request for the backlog is about to be made. Returns whether there is one
    /// already, which executes what the caller has pushed.
    pub(crate) fn note_request(&self) -> bool {
        // Pairs with the acquire in `end_request`.
        self.is_requested.atomic().swap(1, Release) != 0
    }

    /// Notes that a request for the backlog is about to execute it.
    pub(crate) fn end_request(&self) {
        // A swap, because it then also acquires what was pushed before each earlier swap.
        self.is_requested.atomic().swap(0, Acquire);
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.atomic().load(Relaxed) != 0
    }

    pub(crate) fn clear_poison(&self) {
        self.poisoned.atomic().store(0, Relaxed);
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    pub(crate) fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// Executes a closure with the data.
    ///
    /// # Safety
    /// No other thread uses the data.
    #[inline(always)]
    pub(crate) unsafe fn execute<R>(
        &self,
        above: *const Frame,
        closure: impl FnOnce(&mut T) -> R,
    ) -> R {
        let frame = Frame { poisoned: &raw const self.poisoned, above };
        let before = FRAME.replace(&raw const frame);
        let mut entered = FrameGuard { before, on_panic: Some(self) };
        // SAFETY: guaranteed by the caller.
        let result = closure(unsafe { &mut *self.data.get() });
        entered.on_panic = None;
        result
    }

    /// Drops a closure's panic payload within a frame, because dropping it may use the data too.
    ///
    /// # Safety
    /// No other thread uses the data.
    #[cold]
    pub(crate) unsafe fn discard(&self, above: *const Frame, payload: Box<dyn Any + Send>) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.execute(above, |_| discard(payload)) };
    }

    /// Records that a closure has panicked.
    #[cold]
    fn note_panic(&self) {
        if self.poisons.load(Relaxed) {
            self.poisoned.atomic().store(1, Relaxed);
        }
    }

    /// Executes the closures that no thread waits for. `above` is the frame that waits meanwhile.
    ///
    /// # Safety
    /// No other thread uses the data.
    #[inline(always)]
    pub(crate) unsafe fn catch_up(&self, above: *const Frame) {
        if !at_once(self.backlog.is_empty(&MACHINE)) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.execute_backlog(above) };
        }
    }

    /// # Safety
    /// No other thread uses the data.
    #[cold]
    unsafe fn execute_backlog(&self, above: *const Frame) {
        at_once(self.backlog.execute(&MACHINE, &BacklogService { shared: self, above }));
    }

    /// Executes a closure of the calling thread with the data.
    ///
    /// # Errors
    /// Returns the closure if the data is poisoned. The caller must [refuse](refuse) it, after it
    /// has released the data.
    ///
    /// # Panics
    /// When the closure panics.
    ///
    /// # Safety
    /// No other thread uses the data.
    #[inline(always)]
    pub(crate) unsafe fn execute_here<F: FnOnce(&mut T) -> R, R>(
        &self,
        closure: F,
    ) -> Result<R, F> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.catch_up(FRAME.get()) };
        if self.is_poisoned() {
            return Err(closure);
        }
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { self.execute(FRAME.get(), closure) })
    }

    /// Executes a request of the calling thread that was made for the backlog, after the requests
    /// that are already there.
    ///
    /// # Safety
    /// As [`execute_words`].
    pub(crate) unsafe fn execute_request_here(&self, request: (u64, u64)) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.catch_up(FRAME.get()) };
        // SAFETY: guaranteed by the caller.
        unsafe { execute_words(self, request, FRAME.get()) };
    }

    /// Refuses a closure of the calling thread that would wait for itself.
    ///
    /// # Panics
    /// When this thread executes a closure on this data, or a closure that such a closure waits
    /// for.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn refuse_circular_wait(&self) {
        assert!(
            !self.is_in_use_here(),
            "this closure would wait for itself: it calls the `Delegate` or `Server` that executes \
             it, or one whose closure waits for it; use the reference that the closure receives"
        );
    }

    /// Returns whether this thread executes a closure on this data, or a closure that such a
    /// closure waits for.
    #[inline]
    pub(crate) fn is_in_use_here(&self) -> bool {
        let mut frame = FRAME.get();
        while !frame.is_null() {
            // SAFETY: a frame is on the stack of a thread that executes its closure, and stays
            // there until the closure returns. The frames above wait for it.
            let Frame { poisoned, above } = unsafe { &*frame };
            if ptr::eq(*poisoned, &raw const self.poisoned) {
                return true;
            }
            frame = *above;
        }
        false
    }
}

/// Restores the thread's previous frame when it is dropped.
struct FrameGuard<'s, T> {
    before: *const Frame,
    /// The data to notify if the closure panics; `None` once it has returned.
    on_panic: Option<&'s SharedData<T>>,
}

impl<T> Drop for FrameGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        FRAME.set(self.before);
        if let Some(shared) = self.on_panic {
            shared.note_panic();
        }
    }
}

// SAFETY: a scheme executes one closure at a time, and each closure happens before the next one.
unsafe impl<T: Send> Sync for SharedData<T> {}

/// Returns the words of a request.
pub(crate) fn words<T>(execute: Execute<T>, closure: *mut ()) -> (u64, u64) {
    let execute = (execute as *const ()).expose_provenance();
    (execute as u64, closure.expose_provenance() as u64)
}

/// Executes a request.
///
/// # Safety
/// The words are those of a request on data of type `T`. The request is executed once, and no other
/// thread uses the data.
#[inline]
unsafe fn execute_words<T>(
    shared: &SharedData<T>,
    (execute, closure): (u64, u64),
    above: *const Frame,
) {
    let [execute, closure] = [execute, closure].map(|word| {
        let address = usize::try_from(word).unwrap_or(0);
        ptr::with_exposed_provenance_mut::<()>(address)
    });
    // SAFETY: the first word is a function of this type.
    let execute = unsafe { mem::transmute::<*mut (), Execute<T>>(execute) };
    // SAFETY: the second word is the argument of that function; the caller guarantees the rest.
    unsafe { execute(shared, closure, above) };
}

impl<M: Machine, T> Service<M> for SharedData<T> {
    #[inline]
    async fn serve(&self, _: &M, execute: u64, closure: u64) -> u64 {
        // SAFETY: a scheme passes on the words of a request. It executes each request once, while
        // its caller waits, and no other request at the same time.
        unsafe { execute_words(self, (execute, closure), ptr::null()) };
        0
    }
}

/// Executes the closures of a backlog.
struct BacklogService<'s, T> {
    shared: &'s SharedData<T>,
    /// The frame that waits while they are executed.
    above: *const Frame,
}

impl<M: Machine, T> Service<M> for BacklogService<'_, T> {
    #[inline]
    async fn serve(&self, _: &M, execute: u64, closure: u64) -> u64 {
        // SAFETY: these words were pushed on the backlog, which passes each request once, to a
        // thread that has the data to itself.
        unsafe { execute_words(self.shared, (execute, closure), self.above) };
        0
    }
}

/// Executes the closure of a call, after the closures of the backlog.
///
/// # Safety
/// `state` is that of a call with these types. No other thread uses it, or the data of `shared`.
unsafe fn execute<T, F: FnOnce(&mut T) -> R, R>(
    shared: &SharedData<T>,
    state: *mut (),
    _: *const Frame,
) {
    // SAFETY: guaranteed by the caller.
    let state = unsafe { &mut *state.cast::<CallState<F, R>>() };
    // SAFETY: guaranteed by the caller.
    unsafe { shared.catch_up(state.above) };
    // SAFETY: guaranteed by the caller.
    unsafe { state.execute(shared, state.above) };
}

impl<F, R> CallState<F, R> {
    /// Executes the closure within a frame, unless the data is poisoned.
    ///
    /// # Safety
    /// No other thread uses the data of `shared`.
    #[inline]
    unsafe fn execute<T>(&mut self, shared: &SharedData<T>, above: *const Frame)
    where
        F: FnOnce(&mut T) -> R,
    {
        // A refused closure is dropped by its caller: its destructors may panic or use the data.
        let Some(closure) = self.closure.take_if(|_| !shared.is_poisoned()) else {
            return;
        };
        // SAFETY: guaranteed by the caller.
        let within = || unsafe { shared.execute(above, closure) };
        self.result = Some(catch_unwind(AssertUnwindSafe(within)));
    }
}

/// Drops a closure that is not executed because the data is poisoned.
///
/// # Panics
/// Always.
#[cold]
#[track_caller]
pub(crate) fn refuse<F>(closure: F) -> ! {
    drop(closure);
    panic!("{POISONED}")
}

impl<F, R> ClosureCall<F, R> {
    #[inline]
    pub(crate) fn new(closure: F) -> Self {
        let state = CallState { closure: Some(closure), above: FRAME.get(), result: None };
        Self(UnsafeCell::new(state))
    }

    /// Returns the operation on data of type `T`, and its argument. The call must not move until
    /// the operation has been executed.
    #[inline]
    pub(crate) fn request<T>(&self) -> (u64, u64)
    where
        F: FnOnce(&mut T) -> R,
    {
        words(execute::<T, F, R>, self.0.get().cast())
    }

    /// Executes the closure within a frame, unless the data is poisoned.
    ///
    /// # Safety
    /// No other thread uses this call, or the data of `shared`.
    #[inline]
    pub(crate) unsafe fn execute<T>(&self, shared: &SharedData<T>, above: *const Frame)
    where
        F: FnOnce(&mut T) -> R,
    {
        // SAFETY: guaranteed by the caller.
        let state = unsafe { &mut *self.0.get() };
        // SAFETY: guaranteed by the caller.
        unsafe { state.execute(shared, above) };
    }

    /// Returns the result.
    ///
    /// # Panics
    /// When the closure panicked, or was refused because the data is poisoned.
    #[inline]
    #[track_caller]
    pub(crate) fn finish(self) -> R {
        let CallState { closure, result, .. } = self.0.into_inner();
        match result {
            Some(Ok(result)) => result,
            Some(Err(payload)) => resume_unwind(payload),
            None => refuse(closure),
        }
    }
}
