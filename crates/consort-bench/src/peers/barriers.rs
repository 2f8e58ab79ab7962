//! The barriers of the thread libraries, behind one trait.
//!
//! Each implementation only calls the library's barrier. If the library keeps a state for each
//! rank, the implementation first selects the state of the calling rank.
#![expect(unsafe_code, reason = "the libraries need per-rank state and a C barrier")]

use std::cell::UnsafeCell;

/// A barrier of a fixed number of threads.
pub(super) trait Barrier: Sync {
    /// Returns when all threads have called it.
    ///
    /// # Safety
    /// `rank` is below the number of threads, and no other thread uses it at the same time.
    unsafe fn wait(&self, rank: u32);
}

pub(super) use std::sync::Barrier as StdBarrier;

impl Barrier for StdBarrier {
    unsafe fn wait(&self, _rank: u32) {
        StdBarrier::wait(self);
    }
}

/// `hurdles`: a central counter with sense reversal, spinning, then yielding.
pub(super) struct HurdlesBarrier {
    /// Each rank's handle, with its current sense.
    handles: Box<[Handle]>,
}

#[repr(align(128))]
struct Handle(UnsafeCell<hurdles::Barrier>);

// SAFETY: the cell is only used in `HurdlesBarrier::wait`, whose caller ensures that only one
// thread at a time does so. Different threads may use it in turn, because `hurdles::Barrier` is
// Send.
unsafe impl Sync for Handle {}

impl HurdlesBarrier {
    pub(super) fn new(pes: u32) -> HurdlesBarrier {
        let barrier = hurdles::Barrier::new(pes as usize);
        let handle = |_| Handle(UnsafeCell::new(barrier.clone()));
        HurdlesBarrier { handles: (0..pes).map(handle).collect() }
    }
}

impl Barrier for HurdlesBarrier {
    unsafe fn wait(&self, rank: u32) {
        let handle = self.handles[rank as usize].0.get();
        // SAFETY: the caller ensures that no other thread uses this rank, and the reference does
        // not outlive the call.
        let handle = unsafe { &mut *handle };
        handle.wait();
    }
}

#[cfg(target_os = "linux")]
pub(super) use pthread::PthreadBarrier;

#[cfg(target_os = "linux")]
mod pthread {
    use super::Barrier;
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::ptr;

    /// The C library's `pthread_barrier_t`. It must not move, so it is boxed.
    pub(in super::super) struct PthreadBarrier(Box<UnsafeCell<MaybeUninit<Raw>>>);

    type Raw = libc::pthread_barrier_t;

    // SAFETY: `pthread_barrier_wait` may be called by several threads at once, and it is the only
    // operation through a shared reference.
    unsafe impl Sync for PthreadBarrier {}

    impl PthreadBarrier {
        /// # Panics
        /// If `pes` is 0, or more than the C library's barrier can count.
        pub(in super::super) fn new(pes: u32) -> PthreadBarrier {
            let barrier = PthreadBarrier(Box::new(UnsafeCell::new(MaybeUninit::uninit())));
            // SAFETY: the memory is valid for writes and does not move; null selects the default
            // attributes.
            let status = unsafe { libc::pthread_barrier_init(barrier.raw(), ptr::null(), pes) };
            assert_eq!(status, 0, "no pthread barrier of {pes} threads");
            barrier
        }

        fn raw(&self) -> *mut Raw {
            self.0.get().cast()
        }
    }

    impl Barrier for PthreadBarrier {
        unsafe fn wait(&self, _rank: u32) {
            // SAFETY: the barrier was initialized in `new` and has not moved since. It is destroyed
            // only when no reference to it is left.
            let status = unsafe { libc::pthread_barrier_wait(self.raw()) };
            debug_assert!(status == 0 || status == libc::PTHREAD_BARRIER_SERIAL_THREAD);
        }
    }

    impl Drop for PthreadBarrier {
        fn drop(&mut self) {
            // SAFETY: it was initialized, and the exclusive reference shows that no thread waits in
            // it.
            let status = unsafe { libc::pthread_barrier_destroy(self.raw()) };
            debug_assert_eq!(status, 0);
        }
    }
}
