//! Closures as requests: a word that says how to execute one, and a word that says where it is.

#![expect(unsafe_code, reason = "closures travel as words between threads")]

use std::{
    any::Any,
    cell::{Cell, UnsafeCell},
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::atomic::Ordering::Relaxed,
};

use consort_fabric::{Machine, Word};

use crate::delegation::Service;

const POISONED: &str = "the data is poisoned: a closure panicked while it used it";

/// Data that closures use, one at a time.
pub(crate) struct Shared<T> {
    data: UnsafeCell<T>,
    /// Whether the panic of a closure poisons the data.
    pub(crate) poisons: bool,
    poisoned: Word,
}

/// A closure that a thread executes, of this thread or of one that waits for it.
struct Frame {
    /// The word of the data that it uses. The address of the data itself may also be that of data
    /// inside it.
    poisoned: *const Word,
    /// The closure that waits for it.
    above: *const Frame,
}

thread_local! {
    /// The closure that this thread executes.
    static FRAME: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// How a request is executed: with the data, and where the closure is.
type Execute<T> = unsafe fn(&Shared<T>, *mut ());

/// A closure on its way.
pub(crate) struct Call<F, R>(UnsafeCell<State<F, R>>);

struct State<F, R> {
    closure: Option<F>,
    /// The closure that waits for this one.
    above: *const Frame,
    /// What the closure returned or panicked with; `None` if it was refused.
    result: Option<Result<R, Box<dyn Any + Send>>>,
}

impl<T> Shared<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self { data: UnsafeCell::new(data), poisons: false, poisoned: Word::new(0) }
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
    /// Nobody else uses the data.
    #[inline(always)]
    unsafe fn execute<R>(&self, above: *const Frame, closure: impl FnOnce(&mut T) -> R) -> R {
        let frame = Frame { poisoned: &raw const self.poisoned, above };
        let before = FRAME.replace(&raw const frame);
        let mut entered = Entered { before, poisoned: self.poisons.then_some(&self.poisoned) };
        // SAFETY: the caller's promise.
        let result = closure(unsafe { &mut *self.data.get() });
        entered.poisoned = None;
        result
    }

    /// Executes a closure of the calling thread with the data.
    ///
    /// # Errors
    /// The closure, to be [refused](refuse) when others may use the data: the data is poisoned.
    ///
    /// # Panics
    /// When the closure panics.
    ///
    /// # Safety
    /// Nobody else uses the data.
    #[inline(always)]
    pub(crate) unsafe fn execute_here<F: FnOnce(&mut T) -> R, R>(
        &self,
        closure: F,
    ) -> Result<R, F> {
        if self.is_poisoned() {
            return Err(closure);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { self.execute(FRAME.get(), closure) })
    }

    /// Refuses a closure of the calling thread that would wait for itself.
    ///
    /// # Panics
    /// When the thread executes a closure with this data, or one that such a closure waits for.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn refuse_circle(&self) {
        assert!(
            !self.is_in_use_here(),
            "a closure uses the data that it was given, or that a closure which waits for it was \
             given: it would wait for itself"
        );
    }

    /// Whether this thread executes a closure with this data, or one that such a closure waits for.
    #[inline]
    fn is_in_use_here(&self) -> bool {
        let mut frame = FRAME.get();
        while !frame.is_null() {
            // SAFETY: a frame is on the stack of a thread that executes its closure, and stays
            // there until the closure returns. Those above wait for it.
            let Frame { poisoned, above } = unsafe { &*frame };
            if ptr::eq(*poisoned, &raw const self.poisoned) {
                return true;
            }
            frame = *above;
        }
        false
    }
}

/// The frame of a closure that this thread executes, until it is dropped.
struct Entered<'s> {
    before: *const Frame,
    /// What poisons the data, unless the closure returns.
    poisoned: Option<&'s Word>,
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        FRAME.set(self.before);
        if let Some(poisoned) = self.poisoned {
            poisoned.atomic().store(1, Relaxed);
        }
    }
}

// SAFETY: a scheme executes one closure at a time, each before what comes after it.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<M: Machine, T> Service<M> for Shared<T> {
    #[inline]
    async fn serve(&self, _: &M, execute: u64, closure: u64) -> u64 {
        let [execute, closure] = [execute, closure].map(|word| {
            let address = usize::try_from(word).unwrap_or(0);
            ptr::with_exposed_provenance_mut::<()>(address)
        });
        // SAFETY: a scheme passes on the words of `Call::request`, of which the first is a function
        // of this type.
        let execute = unsafe { mem::transmute::<*mut (), Execute<T>>(execute) };
        // SAFETY: the second is what that function takes. A scheme executes each request once,
        // while its caller waits, and no other one meanwhile.
        unsafe { execute(self, closure) };
        0
    }
}

/// Executes the closure of a call.
///
/// # Safety
/// `state` is that of a call with these types, which nobody else uses, nor `shared`'s data.
unsafe fn execute<T, F: FnOnce(&mut T) -> R, R>(shared: &Shared<T>, state: *mut ()) {
    // SAFETY: the caller's promise.
    let state = unsafe { &mut *state.cast::<State<F, R>>() };
    // A closure that is refused is dropped by its caller: what it holds may panic or use the data.
    let Some(closure) = state.closure.take_if(|_| !shared.is_poisoned()) else {
        return;
    };
    // SAFETY: the caller's promise.
    let within = || unsafe { shared.execute(state.above, closure) };
    state.result = Some(catch_unwind(AssertUnwindSafe(within)));
}

/// Drops a closure that is not executed since the data is poisoned.
///
/// # Panics
/// Always.
#[cold]
#[track_caller]
pub(crate) fn refuse<F>(closure: F) -> ! {
    drop(closure);
    panic!("{POISONED}")
}

impl<F, R> Call<F, R> {
    #[inline]
    pub(crate) fn new(closure: F) -> Self {
        let state = State { closure: Some(closure), above: FRAME.get(), result: None };
        Self(UnsafeCell::new(state))
    }

    /// The operation on data of type `T`, and its argument. The call must stay where it is until
    /// that is executed.
    #[inline]
    pub(crate) fn request<T>(&self) -> (u64, u64)
    where
        F: FnOnce(&mut T) -> R,
    {
        let execute: Execute<T> = execute::<T, F, R>;
        let execute = (execute as *const ()).expose_provenance();
        (execute as u64, self.0.get().expose_provenance() as u64)
    }

    /// The result.
    ///
    /// # Panics
    /// When the closure panicked, or was refused since the data is poisoned.
    #[inline]
    #[track_caller]
    pub(crate) fn finish(self) -> R {
        let State { closure, result, .. } = self.0.into_inner();
        match result {
            Some(Ok(result)) => result,
            Some(Err(payload)) => resume_unwind(payload),
            None => refuse(closure),
        }
    }
}
