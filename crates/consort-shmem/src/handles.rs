//! The objects to which the handles of C programs refer.

use std::{
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

/// Objects of one kind. They are never freed, so that the use of a destroyed one is detected; a new
/// one takes its place.
pub(crate) struct Handles<T> {
    all: Mutex<Vec<usize>>,
    destroyed: Mutex<Vec<usize>>,
    of: PhantomData<fn(T)>,
}

impl<T: Send + Sync + 'static> Handles<T> {
    pub(crate) const fn new() -> Self {
        Self { all: Mutex::new(Vec::new()), destroyed: Mutex::new(Vec::new()), of: PhantomData }
    }

    /// Creates an object, and returns its address.
    pub(crate) fn make(&self, object: T) -> usize {
        let free = self.destroyed.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(at) = free else {
            let at = Box::into_raw(Box::new(object)).expose_provenance();
            self.all.lock().unwrap_or_else(PoisonError::into_inner).push(at);
            return at;
        };
        // SAFETY: `make` created it and it was destroyed; `reuse` guarantees that nothing refers to
        // it.
        unsafe { *std::ptr::with_exposed_provenance_mut(at) = object };
        at
    }

    /// Returns an object created by `make`.
    ///
    /// # Safety
    /// `at` was returned by `make`.
    pub(crate) unsafe fn get(&self, at: usize) -> &'static T {
        // SAFETY: objects are never freed.
        unsafe { &*std::ptr::with_exposed_provenance::<T>(at) }
    }

    /// Returns every object that was created, including destroyed ones.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets a new object take the place of one that was destroyed.
    ///
    /// # Safety
    /// `make` returned `at`. This is called once for each time that `make` returns `at`. The result
    /// of [`Handles::get`] for it is not used any more.
    pub(crate) unsafe fn reuse(&self, at: usize) {
        self.destroyed.lock().unwrap_or_else(PoisonError::into_inner).push(at);
    }
}
