//! Actions around a fork, by handlers of the C library.
//!
//! | when | action |
//! | --- | --- |
//! | before the fork | wait until no other thread holds it off ([`hold_forks`]); block signals |
//! | then | copy static variables to private memory |
//! | in the parent | release the copies; unblock signals |
//! | in the child | map the copies in place of the variables; increment the count of forks; do the registered work; unblock signals |
//!
//! The order matters: a child shares static variables with its parent until the copies are in
//! place, so it may not write before that. Signals are blocked because their handlers could write.
//! A child made by `vfork` or `clone` runs no handlers, and is not noticed.

#![expect(unsafe_code, reason = "registers functions with the C library")]

use std::{
    cell::Cell,
    io,
    marker::PhantomData,
    mem,
    sync::{
        Once, OnceLock,
        atomic::{
            AtomicBool, AtomicU32,
            Ordering::{Relaxed, SeqCst},
            compiler_fence,
        },
    },
    thread,
    time::{Duration, Instant},
};

use libc::sigset_t;

use super::{library, signals};

/// Functions that copy static variables around a fork.
pub struct StaticCopies {
    /// Runs before the fork.
    pub before: fn(),
    /// Runs in the parent after the fork.
    pub in_parent: fn(),
    /// Runs in the child after the fork.
    pub in_child: fn(),
}

static COPIES: OnceLock<StaticCopies> = OnceLock::new();
/// The number of forks between the first process that registered the functions and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The work to do in children, in the order of its registration.
static WORK: [OnceLock<fn()>; 4] = [const { OnceLock::new() }; 4];
/// Whether the functions are registered.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// The number of forks in progress.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// The number of holds.
static HELD: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The number of holds that this thread has.
    static OWN: Cell<u32> = const { Cell::new(0) };
    /// Whether the thread forks. The functions may be registered twice: only the first call counts.
    static FORKS_NOW: Cell<bool> = const { Cell::new(false) };
    /// The thread's signal mask before the fork.
    static BLOCKED: Cell<sigset_t> = const { Cell::new(no_signals()) };
}

const fn no_signals() -> sigset_t {
    // SAFETY: an all-zero set is valid, and empty.
    unsafe { mem::zeroed() }
}

/// The longest time that a fork waits for holds, and a hold for forks. After that the fork or the
/// hold proceeds: the child may then hang, but the parent does not.
const LONGEST: Duration = Duration::from_secs(1);

/// The pause between two checks of whether the other threads' forks or holds have ended.
const PAUSE: Duration = Duration::from_micros(20);

/// A right of this thread to lock what belongs to the process. Forks of other threads wait until it
/// ends, so that their children do not find the lock locked forever.
#[derive(Debug)]
pub struct ForkHold(PhantomData<*const ()>);

/// Keeps other threads from forking until the result is dropped. It is for short work that calls no
/// code of the program.
///
/// # Panics
/// When the system has no memory.
#[must_use]
pub fn hold_forks() -> ForkHold {
    registered();
    let own = OWN.get();
    // A signal handler may fork at any point here, and must not wait for its own thread. So the
    // thread's own count rises first, and falls last, in `drop`.
    OWN.set(own + 1);
    compiler_fence(SeqCst);
    // Sequentially consistent, as in `before`: either a fork sees this hold, or this sees the fork.
    HELD.fetch_add(1, SeqCst);
    if own == 0 && !FORKS_NOW.get() && FORKING.load(SeqCst) > 0 {
        wait_for_forks();
    }
    ForkHold(PhantomData)
}

/// Waits until no thread forks.
#[cold]
fn wait_for_forks() {
    let begun = Instant::now();
    while FORKING.load(SeqCst) > 0 && begun.elapsed() < LONGEST {
        end_hold();
        thread::sleep(PAUSE);
        HELD.fetch_add(1, SeqCst);
    }
}

/// Subtracts a hold. In a child that a signal handler has forked in the middle of a hold, it does
/// not count.
fn end_hold() {
    let _ = HELD.fetch_update(SeqCst, SeqCst, |held| held.checked_sub(1));
}

impl Drop for ForkHold {
    fn drop(&mut self) {
        end_hold();
        compiler_fence(SeqCst);
        OWN.set(OWN.get() - 1);
    }
}

/// Keeps the shared library that contains this code loaded until the process ends. Does nothing in
/// a program's own code.
///
/// # Panics
/// When the dynamic linker refuses, which it does only when it has no memory.
pub fn stay_loaded() {
    // Threads must not wait for each other here: one of them may hold the dynamic linker's lock.
    if !library::is_pinned() {
        // Otherwise the dynamic linker's lock would stay locked in a child.
        let _hold = hold_forks();
        library::pin();
    }
}

extern "C" fn before() {
    if FORKS_NOW.replace(true) {
        return;
    }
    FORKING.fetch_add(1, SeqCst);
    let begun = Instant::now();
    while HELD.load(SeqCst) > OWN.get() && begun.elapsed() < LONGEST {
        thread::sleep(PAUSE);
    }
    BLOCKED.set(signals::block());
    if let Some(copies) = COPIES.get() {
        (copies.before)();
    }
}

extern "C" fn in_parent() {
    if !FORKS_NOW.replace(false) {
        return;
    }
    if let Some(copies) = COPIES.get() {
        (copies.in_parent)();
    }
    signals::restore(&BLOCKED.get());
    FORKING.fetch_sub(1, SeqCst);
}

extern "C" fn in_child() {
    if !FORKS_NOW.replace(false) {
        return;
    }
    if let Some(copies) = COPIES.get() {
        (copies.in_child)();
    }
    // Only this thread exists in the child. Until now, variables could be the parent's.
    FORKING.store(0, SeqCst);
    HELD.store(0, SeqCst);
    // Relaxed: as above.
    FORKS.store(FORKS.load(Relaxed).wrapping_add(1), Relaxed);
    WORK.iter().filter_map(OnceLock::get).for_each(|work| work());
    signals::restore(&BLOCKED.get());
}

/// Registers the functions above. Unloading a library removes its registration. There is no lock,
/// since a child may be forked in the meantime: threads may register twice.
fn register() -> io::Result<()> {
    // Relaxed: it publishes no other data.
    if IS_REGISTERED.load(Relaxed) {
        return Ok(());
    }
    // SAFETY: these are functions without arguments, and they stay loaded.
    let error = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    IS_REGISTERED.store(true, Relaxed);
    Ok(())
}

fn registered() {
    register().expect("the C library registers functions for forks (pthread_atfork)");
}

/// Registers functions that copy static variables around each fork.
///
/// # Errors
/// When other variables are copied already, or the system has no memory.
pub fn copy(copies: StaticCopies) -> io::Result<()> {
    COPIES.set(copies).map_err(|_| io::ErrorKind::AlreadyExists)?;
    stay_loaded();
    register()
}

/// Registers work to do in each child. The work may use only what signal handlers may use.
///
/// # Panics
/// When the system has no memory, or there is too much work.
pub fn in_children(work: fn()) {
    forks();
    let free = WORK.iter().any(|slot| slot.set(work).is_ok());
    assert!(free, "forked children have work of at most {} kinds", WORK.len());
}

/// Like [`in_children`], but registers only once for the same `once`.
///
/// # Panics
/// As for [`in_children`].
pub fn in_children_once(once: &Once, work: fn()) {
    stay_loaded(); // before the hold: it may wait for the dynamic linker's lock
    let _hold = hold_forks();
    once.call_once(|| in_children(work));
}

/// Returns the number of forks between the first process that called this and the calling one.
///
/// # Panics
/// When the system has no memory.
pub fn forks() -> u32 {
    registered();
    stay_loaded();
    forks_so_far()
}

/// Like [`forks`], for use after a call of it.
#[inline(always)]
pub fn forks_so_far() -> u32 {
    FORKS.load(Relaxed)
}

/// Prints why a child cannot go on and ends the child, by system calls only.
pub fn end_child(line: &str) -> ! {
    // SAFETY: the pointer and the length are those of the line.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    // SAFETY: it ends the process without running code of the program.
    unsafe { libc::_exit(1) }
}
