//! The end of a process: the actions of the library when the process exits, and when the launcher
//! ends it.
//!
//! A PE that calls `shmem_global_exit` ends all PEs, which must still flush their streams. A PE
//! that waits in the library notices at once and exits. A PE that computes gets the launcher's
//! `SIGTERM`. A signal handler cannot exit, because the program may be in the middle of `malloc`.
//! So it hides the library from its callers (`world::forget`): the next routine that the program
//! calls, or the end of `main`, exits in an orderly way. This adds no cost to calls. A PE that does
//! neither in time is killed.

use std::{
    mem::MaybeUninit,
    ptr::null_mut,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use consort::{
    Rank,
    bindings::{all_gather_named, start_all_gather_named},
};
use consort_native::{Failure, WaitSnapshot};
use libc::{c_int, c_void};

use crate::{
    collectives::TeamCall,
    failure::{self, FINALIZE},
    rma,
    teams::Team,
    world::{self, World},
};

/// How often a PE that has exited checks whether all others wait.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

unsafe extern "C" {
    /// Registers a function that glibc calls at exit with the status and an argument.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Registers `handler`, which is called at exit with the exit status.
pub(crate) fn call_at_exit(handler: extern "C" fn(c_int, *mut c_void)) {
    // SAFETY: the handler does not use its argument, and this code is never unloaded.
    unsafe { on_exit(handler, null_mut()) };
}

/// Handles the launcher's `SIGTERM`, unless the program was started with another action for it. A
/// handler that the program installs later replaces this one.
pub(crate) fn take_signal() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: it only reads the current action, and initializes `before`.
    let is_known = unsafe { libc::sigaction(libc::SIGTERM, null_mut(), before.as_mut_ptr()) } == 0;
    // SAFETY: as above.
    if !is_known || unsafe { before.assume_init() }.sa_sigaction != libc::SIG_DFL {
        return;
    }
    let handler: extern "C" fn(c_int) = on_signal;
    // SAFETY: zeros are an action: the default one, with no flags and an empty set.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGTERM, &raw const action, null_mut()) };
}

/// Handles `SIGTERM`. It is async-signal-safe: it only reads and writes atomics, and makes system
/// calls.
extern "C" fn on_signal(signal: c_int) {
    if failure::membership().is_some_and(|world| world.process.is_current() && world.job.is_ended())
    {
        world::forget();
        return;
    }
    // SAFETY: both are async-signal-safe. The signal is delivered again when this returns, and ends
    // the process as if there were no handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Until this is dropped, fails the job if no PE can continue: if this PE has exited and waits for
/// its peers in `shmem_finalize`, one of them waits for a word, for example of a lock or a signal,
/// and all others wait too.
pub(crate) struct ExitWatch(Arc<AtomicBool>);

impl ExitWatch {
    /// Watches the other PEs, but not if their threads call the library at the same time, because
    /// one thread may wait while another continues. If the thread that watches cannot be started,
    /// an incorrect program may wait forever.
    pub(crate) fn of(world: &'static World) -> Self {
        let is_over = Arc::new(AtomicBool::new(!world.is_launched || world.pes == 1));
        if !is_over.load(Relaxed) && !world.takes_turns.load(Relaxed) {
            let is_over = Arc::clone(&is_over);
            let watch = move || watch(world, &is_over);
            drop(thread::Builder::new().name("shmem exit".to_owned()).spawn(watch));
        }
        Self(is_over)
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn watch(world: &World, is_over: &AtomicBool) {
    let mut before: Option<WaitSnapshot> = None;
    loop {
        thread::sleep(CHECK_INTERVAL);
        if is_over.load(Relaxed) {
            return;
        }
        let Some(now) = world.job.wait_snapshot() else {
            before = None;
            continue;
        };
        let since = before.take().filter(|before| now.has_same_waits_as(before));
        if let Some(waiting) = since.as_ref().and_then(|since| now.is_permanent(since)) {
            let other = Some((world.rank, format!("{FINALIZE}, since it has exited")));
            return world.job.poison(&Failure::NobodyLeft { waiting, other });
        }
        before = since.or(Some(now));
    }
}

/// Waits in `shmem_finalize` until all PEs have arrived. Returns the first PE that has exited
/// without calling it, if any.
pub(crate) fn first_pe_that_has_exited(has_exited: bool) -> Option<Rank> {
    rma::publish();
    let call = TeamCall::new(FINALIZE, Team::WORLD)?;
    let own = u32::from(has_exited);
    let all = call.make(
        |team| all_gather_named(team, FINALIZE, own),
        |team| start_all_gather_named(team, FINALIZE, own),
    );
    let first = all.iter().position(|&has_exited| has_exited != 0)?;
    u32::try_from(first).ok().map(Rank)
}
