//! The error of a refused request for memory.

use std::{fmt, io};

use consort_machine::limits::{MemoryLimit, RefusedRequest, left, memory_left, remedy};

use super::origin::Origin;
use crate::system::allocator;

/// The address space that a new job leaves for the program, in bytes.
const PROGRAM: usize = 16 << 20;

/// The size in bytes of a standard library thread's stack, including what the C library maps for
/// each thread. `RUST_MIN_STACK` makes stacks larger.
const THREAD: usize = (2 << 20) + (256 << 10);

/// The system has refused memory. Contains the system call, the purpose and size of the memory, the
/// system's error, and the limit to raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryError {
    call: &'static str,
    object: String,
    bytes: usize,
    /// The system's error number; 0 if there is none.
    code: i32,
    error: String,
    advice: String,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, object, bytes, error, advice, .. } = self;
        write!(f, "{call}{} for {object}: {error}; {advice}", size(*bytes))
    }
}

impl std::error::Error for MemoryError {}

/// Formats the size for a message. Empty if the request has no size.
fn size(bytes: usize) -> String {
    if bytes == 0 { String::new() } else { format!(" of {bytes} bytes") }
}

impl MemoryError {
    /// Returns the error of a system call that should have provided `bytes` for `object`.
    #[cold]
    pub(crate) fn of(
        call: &'static str,
        object: &str,
        bytes: usize,
        error: &io::Error,
    ) -> Box<Self> {
        let (object, code) = (object.to_owned(), error.raw_os_error().unwrap_or(0));
        let advice = remedy(error, RefusedRequest::Memory(bytes));
        let advice =
            advice.unwrap_or_else(|| "ask for less symmetric memory or fewer PEs".to_owned());
        Box::new(Self { call, object, bytes, code, error: error.to_string(), advice })
    }

    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// Returns the error of a forked child in which a system call should have provided `bytes` for
    /// `object` of the parent's job.
    #[cold]
    pub(crate) fn in_child(call: &'static str, object: &str, bytes: usize) -> Box<Self> {
        let error = "this process is a forked child of one that runs the job".to_owned();
        let advice = "let it call exec or exit, or launch another job".to_owned();
        Box::new(Self { call, object: object.to_owned(), bytes, code: 0, error, advice })
    }

    /// Returns the error, with this number, of another process that should have provided `bytes`
    /// for `object`.
    #[cold]
    pub(crate) fn elsewhere(object: &str, bytes: usize, code: i32) -> Box<Self> {
        let error = match code {
            0 => out_of_memory(),
            code => io::Error::from_raw_os_error(code),
        };
        Self::of("another process's request", object, bytes, &error)
    }

    /// Checks that the memory limits leave room for `bytes` of `object`, for the stacks of
    /// `threads` and for the program itself.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn ensure_room(
        object: &str,
        (bytes, origin): (usize, Origin),
        threads: usize,
    ) -> Result<(), Box<Self>> {
        let own = threads.saturating_mul(THREAD.max(min_stack())).saturating_add(PROGRAM);
        let all = own.saturating_add(bytes);
        let of_data = if origin == Origin::Private { all } else { own };
        let is_short = |limit, needed| left(limit).is_some_and(|left| left < needed);
        if is_short(MemoryLimit::AddressSpace, all) || is_short(MemoryLimit::Data, of_data) {
            let object = match threads {
                0 => object.to_owned(),
                _ => format!("{object}, and stacks of {threads} threads"),
            };
            return Err(Self::of("mmap", &object, all, &out_of_memory()));
        }
        let arenas = threads.saturating_mul(allocator::ARENA);
        if is_short(MemoryLimit::AddressSpace, all.saturating_add(arenas)) {
            allocator::share_arena();
        }
        Ok(())
    }

    /// Checks that the memory limits leave room for another thread.
    ///
    /// # Errors
    /// When they do not.
    pub fn ensure_thread() -> Result<(), Box<Self>> {
        let Some(left) = memory_left() else { return Ok(()) };
        let needed = THREAD.max(min_stack());
        if needed <= left {
            return Ok(());
        }
        Err(Self::of("mmap", "the stack of a thread", needed, &out_of_memory()))
    }
}

/// Returns the stack size that the environment requests.
fn min_stack() -> usize {
    let text = std::env::var("RUST_MIN_STACK").ok();
    text.and_then(|text| text.parse().ok()).map_or(0, |bytes: usize| bytes.saturating_add(1 << 18))
}

pub(crate) fn out_of_memory() -> io::Error {
    #[cfg(target_os = "linux")]
    return io::Error::from_raw_os_error(libc::ENOMEM);
    #[cfg(not(target_os = "linux"))]
    return io::ErrorKind::OutOfMemory.into();
}

/// Returns a size that shrinks under memory limits: at most `most` and a quarter of what is left,
/// but at least `least`.
pub(crate) fn sparing(least: usize, most: usize) -> usize {
    let quarter = memory_left().map_or(usize::MAX, |left| left / 4);
    most.min(quarter).max(least)
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn failed_request_under_no_limit_gets_advice() {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
        let text = MemoryError::of("mmap", "a test", 8, &invalid).to_string();
        assert!(text.starts_with("mmap of 8 bytes for a test: "), "{text}");
        assert!(text.ends_with("; ask for less symmetric memory or fewer PEs"), "{text}");
    }
}
