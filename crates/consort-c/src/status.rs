//! The result of a function: a code, and a message for an error.

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_int},
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
};

use consort::{
    Error,
    error::{CallError, LaunchError, TeamError},
};
use consort_machine::{discard, panic_reason};

/// The code of an error, as in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// An argument is wrong.
    Argument = 1,
    /// The handle belongs to another thread.
    Thread = 2,
    /// The team is freed, or its PE is not running.
    Ended = 3,
    /// Threads run all PEs of the job.
    Full = 4,
    /// Another thread runs the PE, or has teams of it.
    Taken = 5,
    /// The thread runs a PE of the job already.
    Joined = 6,
    /// A region inside a region of the same pool.
    Nested = 7,
    /// The system refuses memory or threads, or a setting is wrong.
    System = 8,
    /// A fault of this library.
    Internal = 9,
    /// A PE has failed.
    PeFailed = 16,
    /// PEs made different calls.
    Mismatched = 17,
    /// A wait has exceeded its limit.
    TimedOut = 18,
    /// A forked child used an object of its parent.
    Forked = 19,
}

impl Code {
    fn of(error: &Error) -> Self {
        match error {
            Error::PeFailed { .. } | Error::JobFailed => Self::PeFailed,
            Error::Mismatched(_) => Self::Mismatched,
            Error::TimedOut(_) => Self::TimedOut,
            Error::Forked => Self::Forked,
            Error::Call(CallError::Ended | CallError::Freed) => Self::Ended,
            Error::Call(CallError::Team(TeamError::Memory { .. })) => Self::System,
            Error::Call(_) => Self::Argument,
            Error::Launch(LaunchError::JobFull { .. }) => Self::Full,
            Error::Launch(LaunchError::RankTaken { .. } | LaunchError::HeldElsewhere { .. }) => {
                Self::Taken
            }
            Error::Launch(LaunchError::JoinedAlready { .. }) => Self::Joined,
            Error::Launch(LaunchError::Nested) => Self::Nested,
            _ => Self::System,
        }
    }
}

/// Why a function fails.
#[derive(Debug)]
pub(crate) struct Fault {
    code: Code,
    reason: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(code: Code, reason: impl Display) -> Self {
        Self { code, reason: reason.to_string() }
    }

    #[cold]
    pub(crate) fn argument(reason: impl Display) -> Self {
        Self::new(Code::Argument, reason)
    }

    /// Records the fault as the last error of this thread, and returns its code.
    #[cold]
    #[inline(never)]
    fn record(self, function: &str) -> c_int {
        let code = self.code as c_int;
        let text = format!("{function}: {}", self.reason).replace('\0', " ");
        let text = CString::new(text).unwrap_or_default();
        // A thread that is ending keeps no message.
        let _ = LAST.try_with(|last| last.replace((code, text)));
        code
    }
}

impl From<Error> for Fault {
    #[cold]
    #[inline(never)]
    fn from(error: Error) -> Self {
        Self::new(Code::of(&error), &error)
    }
}

thread_local! {
    static LAST: RefCell<(c_int, CString)> = RefCell::default();
}

/// Runs the body of a function, and returns its code.
#[inline(always)]
pub(crate) fn status_of(function: &str, body: impl FnOnce() -> Result<(), Fault>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(fault)) => fault.record(function),
        Err(panic) => {
            let fault = Fault::new(Code::Internal, panic_reason(&*panic));
            discard(panic);
            fault.record(function)
        }
    }
}

/// Returns the message of this thread's last error, if that had this code.
pub(crate) fn last_message(code: c_int) -> Option<String> {
    let of = |last: &RefCell<(c_int, CString)>| {
        let last = last.borrow();
        (last.0 == code).then(|| last.1.to_string_lossy().into_owned())
    };
    LAST.try_with(of).ok().flatten()
}

/// Returns the message of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn consort_error_message() -> *const c_char {
    const ENDING: &CStr = c"the thread is ending, and keeps no message";
    LAST.try_with(|last| last.borrow().1.as_ptr()).unwrap_or(ENDING.as_ptr())
}
