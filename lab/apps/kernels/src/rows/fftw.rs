//! Transforms with the system's FFTW, with measured plans.
#![expect(unsafe_code, reason = "calls a C library")]

use std::{
    ffi::{c_int, c_uint},
    ptr::NonNull,
    sync::{Mutex, MutexGuard, PoisonError},
};

use num_complex::Complex64;

use super::{Direction, Rows};

/// Plans work for arrays at any address.
const UNALIGNED: c_uint = 1 << 1;

/// An FFTW plan. It is only used through pointers.
#[repr(C)]
struct Opaque([u8; 0]);

#[rustfmt::skip]
#[link(name = "fftw3")]
unsafe extern "C" {
    fn fftw_plan_dft_1d(
        len: c_int, from: *mut Complex64, to: *mut Complex64, sign: c_int, flags: c_uint,
    ) -> *mut Opaque;
    fn fftw_execute_dft(plan: *const Opaque, from: *mut Complex64, to: *mut Complex64);
    fn fftw_destroy_plan(plan: *mut Opaque);
}

/// Locks FFTW's planner. FFTW may plan on one thread at a time; it executes plans on any thread.
fn planner() -> MutexGuard<'static, ()> {
    static PLANNER: Mutex<()> = Mutex::new(());
    PLANNER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Plan {
    len: usize,
    plan: NonNull<Opaque>,
}

// SAFETY: an FFTW plan is not tied to a thread.
unsafe impl Send for Plan {}

impl Plan {
    pub(super) fn new(len: usize, direction: Direction) -> Self {
        let mut row = vec![Complex64::ZERO; len];
        let row = row.as_mut_ptr();
        let sign = if direction == Direction::Forward { -1 } else { 1 };
        let size = c_int::try_from(len).expect("the length of a row fits C's int");
        let _alone = planner();
        // SAFETY: the row lives during the call, and no other thread plans.
        let plan = unsafe { fftw_plan_dft_1d(size, row, row, sign, UNALIGNED) };
        Self { len, plan: NonNull::new(plan).expect("a plan of FFTW") }
    }
}

impl Rows for Plan {
    fn transform(&mut self, data: &mut [Complex64]) {
        assert!(data.len().is_multiple_of(self.len), "rows of {} elements", self.len);
        for row in data.chunks_exact_mut(self.len) {
            let row = row.as_mut_ptr();
            // SAFETY: the plan is for rows of this length, in place, at any address.
            unsafe { fftw_execute_dft(self.plan.as_ptr(), row, row) };
        }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let _alone = planner();
        // SAFETY: the plan is not used after this, and no other thread plans.
        unsafe { fftw_destroy_plan(self.plan.as_ptr()) };
    }
}
