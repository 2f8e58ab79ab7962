//! Work in the children that a process forks.
//!
//! | when | what |
//! | --- | --- |
//! | before a fork, after it in the parent, first in the child | static variables are copied |
//! | then in the child | the count of forks is raised |
//! | then | the work that has been registered |
//!
//! The order matters: the variables may be shared with the parent until they are copied. The thread
//! that forks gets no signals meanwhile: a handler could write what is still shared. A child that has not been forked by the C library's `fork`, as by `vfork` or `clone`, is not noticed.

#![expect(unsafe_code, reason = "registers functions with the C library")]

use std::{
    cell::Cell,
    io, mem,
    ptr::null_mut,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use libc::sigset_t;

/// Functions that copy static variables around a fork.
pub(crate) struct Copies {
    pub(crate) before: fn(),
    pub(crate) in_parent: fn(),
    pub(crate) in_child: fn(),
}

static COPIES: OnceLock<Copies> = OnceLock::new();
/// How many forks lie between this process and the first one that registered the functions.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The work of children, in the order in which it was registered.
static WORK: [OnceLock<fn()>; 4] = [const { OnceLock::new() }; 4];
/// The error of the registration, if it failed.
static REGISTERED: OnceLock<i32> = OnceLock::new();

const fn no_signals() -> sigset_t {
    // SAFETY: zeros are a set, which is empty.
    unsafe { mem::zeroed() }
}

thread_local! {
    /// The signals that the thread did not get before the fork.
    static BLOCKED: Cell<sigset_t> = const { Cell::new(no_signals()) };
}

/// Keeps signals from the thread.
fn block_signals() {
    let (mut all, mut before) = (no_signals(), no_signals());
    // SAFETY: a set of this thread.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: two sets of this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    BLOCKED.set(before);
}

/// Lets the thread have the signals that it had before.
fn unblock_signals() {
    let before = BLOCKED.get();
    // SAFETY: a set of this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
}

extern "C" fn before() {
    block_signals();
    if let Some(copies) = COPIES.get() {
        (copies.before)();
    }
}

extern "C" fn in_parent() {
    if let Some(copies) = COPIES.get() {
        (copies.in_parent)();
    }
    unblock_signals();
}

extern "C" fn in_child() {
    if let Some(copies) = COPIES.get() {
        (copies.in_child)();
    }
    // Relaxed: the child has this thread alone.
    FORKS.store(FORKS.load(Relaxed).wrapping_add(1), Relaxed);
    WORK.iter().filter_map(OnceLock::get).for_each(|work| work());
    unblock_signals();
}

/// Registers the functions above, once.
fn register() -> io::Result<()> {
    super::library::stay_loaded(); // not within: that would wait with the lock below
    let error = *REGISTERED.get_or_init(|| {
        // SAFETY: functions without arguments, which stay loaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) }
    });
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Has static variables copied around each fork.
///
/// # Errors
/// When others copy some already, or the system has no memory.
pub(crate) fn copy(copies: Copies) -> io::Result<()> {
    COPIES.set(copies).map_err(|_| io::ErrorKind::AlreadyExists)?;
    register()
}

/// Has work done in each child. It may use what signal handlers may use.
///
/// # Panics
/// When the system has no memory, or there is too much work.
pub fn in_children(work: fn()) {
    forks();
    let free = WORK.iter().any(|slot| slot.set(work).is_ok());
    assert!(free, "forked children have work of at most {} kinds", WORK.len());
}

/// How many forks lie between this process and the first one that called this.
///
/// # Panics
/// When the system has no memory.
pub(crate) fn forks() -> u32 {
    register().expect("the C library registers functions for forks (pthread_atfork)");
    forks_so_far()
}

/// As [`forks`], after a call of it.
#[inline(always)]
pub(crate) fn forks_so_far() -> u32 {
    FORKS.load(Relaxed)
}

/// Says why a child cannot go on, and ends it, by the system's calls alone.
pub(crate) fn end_child(line: &str) -> ! {
    // SAFETY: the line's bytes.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    // SAFETY: ends the process, without anything that the program would do.
    unsafe { libc::_exit(1) }
}
