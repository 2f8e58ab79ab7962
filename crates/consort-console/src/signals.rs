//! Signals that ask the command to stop, and the waits that these signals end.

use std::{
    error::Error,
    ffi::c_int,
    fmt, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// The exit status of a process that an interrupt has ended.
pub const INTERRUPTED: u8 = 130;

/// The flag of this process, once a command has requested it.
static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns the flag that is set by an interrupt (Ctrl-C) or a request to terminate; a second one
/// ends the process. To be called once in a process.
///
/// # Errors
/// When the system refuses a signal handler.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    stop_at(&[SIGINT, SIGTERM]).context("cannot handle interrupts")
}

/// As [`stop_flag`], for some of its signals.
pub(crate) fn stop_at(signals: &[c_int]) -> io::Result<Arc<AtomicBool>> {
    let flag = FLAG.get_or_init(Arc::default);
    for &signal in signals {
        // In this order the first signal finds the flag unset, and only sets it.
        let status = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(Arc::clone(flag))
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error. Without a handler, the
/// signal ends the process and leaves a temporary file. Processes started later inherit nothing.
pub fn survive_size_limit() {
    // Without a handler such writes end the process, as before.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Returns whether the flag is set.
pub fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes no other data.
    stop.load(Relaxed)
}

fn is_stopped() -> bool {
    FLAG.get().is_some_and(|flag| is_set(flag))
}

/// A wait that ends at the first signal during it.
pub struct Wait {
    /// Whether a signal came before the wait. Then the output is the results so far, and no signal
    /// ends the wait.
    was_stopped: bool,
}

impl Wait {
    /// Begins a wait.
    pub fn begin() -> Self {
        Self { was_stopped: is_stopped() }
    }

    /// Fails if a signal has come since the wait began.
    ///
    /// # Errors
    /// [`Interrupted`], if a signal has come.
    pub fn check(&self) -> io::Result<()> {
        if is_stopped() && !self.was_stopped { Err(io::Error::other(Interrupted)) } else { Ok(()) }
    }
}

/// The error for a wait that a signal has ended.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted while it waited for a reader")
    }
}

impl Error for Interrupted {}

impl Interrupted {
    /// Returns whether an error was caused by an interrupt.
    pub fn has_caused(error: &anyhow::Error) -> bool {
        error.chain().any(|cause| {
            let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            inner.is_some_and(|inner| inner.is::<Self>())
        })
    }
}
