//! System errors, with advice on what to do about them.
//!
//! The system returns an error number, which names neither the operation that failed nor the limit
//! that was reached. These functions add both, so that the message names the call, the object and
//! the remedy.

use std::io;

use crate::limits::{RefusedRequest, remedy};

/// Returns an error that names the failed call, such as `open /proc/1/fd/3`, and the remedy.
#[must_use]
pub fn of_call(call: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{call}: {}", advised(error)))
}

/// Returns the text of an error, with advice if a limit was reached.
#[must_use]
pub fn advised(error: &io::Error) -> String {
    match remedy(error, RefusedRequest::Other) {
        Some(advice) => format!("{error}: {advice}"),
        None => error.to_string(),
    }
}

/// Returns the text of an error from starting a thread, with advice.
#[must_use]
pub fn of_thread(error: &io::Error) -> String {
    match remedy(error, RefusedRequest::Thread) {
        Some(advice) => format!("{error}: {advice}"),
        None => error.to_string(), // not a system error: its text names the limit
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn errors_of_limits_name_the_limit() {
        let refused = io::Error::from_raw_os_error(libc::EAGAIN);
        let error = of_call("fork", &refused);
        assert!(error.to_string().starts_with("fork: "), "{error}");
        assert!(error.to_string().contains("`ulimit -u`"), "{error}");
        assert_eq!(error.kind(), refused.kind());
        assert_eq!(of_thread(&io::Error::other("too many")), "too many");
        let error = of_call("open /x", &io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(error.to_string(), "open /x: Operation not permitted (os error 1)");
    }
}
