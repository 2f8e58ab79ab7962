//! Counting puts, which extend the specification: `shmemx_…`.

use libc::{c_int, c_long, c_void};

use crate::counting::{self, Counter};

#[unsafe(no_mangle)]
unsafe extern "C" fn shmemx_ct_create(ct: *mut Counter) {
    // SAFETY: guaranteed by the program, here and below.
    unsafe { counting::create(ct) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shmemx_ct_free(ct: *mut Counter) {
    // SAFETY: as above.
    unsafe { counting::free(ct) }
}

#[unsafe(no_mangle)]
extern "C" fn shmemx_ct_get(ct: Counter) -> c_long {
    counting::value(ct)
}

#[unsafe(no_mangle)]
extern "C" fn shmemx_ct_set(ct: Counter, value: c_long) {
    counting::set(ct, value);
}

#[unsafe(no_mangle)]
extern "C" fn shmemx_ct_wait(ct: Counter, wait_for: c_long) {
    counting::wait(ct, wait_for);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shmemx_putmem_ct(
    ct: Counter,
    target: *mut c_void,
    source: *const c_void,
    len: usize,
    pe: c_int,
) {
    // SAFETY: as above.
    unsafe { counting::putmem(ct, target, source, len, pe) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shmemx_getmem_ct(
    ct: Counter,
    target: *mut c_void,
    source: *const c_void,
    len: usize,
    pe: c_int,
) {
    // SAFETY: as above.
    unsafe { counting::getmem(ct, target, source, len, pe) }
}
