//! The symmetric heap, addresses in it, and locks there.

use libc::{c_int, c_long, c_void};

use super::routine;
use crate::{locks, memory, teams::Team};

routine!(("malloc") (size: usize) -> *mut c_void => memory::malloc(size));
routine!(("calloc") (count: usize, size: usize) -> *mut c_void => memory::calloc(count, size));
routine!(("align") (alignment: usize, size: usize) -> *mut c_void =>
    memory::align(alignment, size));
routine!(("malloc_with_hints") (size: usize, hints: c_long) -> *mut c_void =>
    memory::malloc_with_hints(size, hints));
routine!(("realloc") (ptr: *mut c_void, size: usize) -> *mut c_void =>
    memory::realloc(ptr, size));
routine!(("free") (ptr: *mut c_void) => memory::free(ptr));
routine!(("ptr") (dest: *const c_void, pe: c_int) -> *mut c_void => memory::ptr(dest, pe));
routine!(("team_ptr") (team: Team, dest: *const c_void, pe: c_int) -> *mut c_void =>
    memory::team_ptr(team, dest, pe));
routine!(("addr_accessible") (addr: *const c_void, pe: c_int) -> c_int =>
    memory::addr_accessible(addr, pe));
routine!(("pe_accessible") (pe: c_int) -> c_int => memory::pe_accessible(pe));
routine!(("set_lock") (lock: *mut c_long) => locks::set(lock));
routine!(("test_lock") (lock: *mut c_long) -> c_int => locks::test(lock));
routine!(("clear_lock") (lock: *mut c_long) => locks::clear(lock));

/// As `shmem_malloc`, under its name in version 1.0.
#[unsafe(no_mangle)]
extern "C" fn shmalloc(size: usize) -> *mut c_void {
    memory::malloc(size)
}

/// As `shmem_free`.
#[unsafe(no_mangle)]
extern "C" fn shfree(ptr: *mut c_void) {
    memory::free(ptr);
}

/// As `shmem_realloc`.
#[unsafe(no_mangle)]
extern "C" fn shrealloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    memory::realloc(ptr, size)
}

/// As `shmem_align`.
#[unsafe(no_mangle)]
extern "C" fn shmemalign(alignment: usize, size: usize) -> *mut c_void {
    memory::align(alignment, size)
}
