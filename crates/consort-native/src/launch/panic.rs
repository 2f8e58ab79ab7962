//! What a thread has panicked with.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// What a thread panicked with.
pub type Panic = Box<dyn Any + Send>;

/// Why a PE that panicked with this has failed.
#[must_use]
pub fn panic_reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}

/// Drops what a program has made, and nobody asks for any more. It may panic: then that is lost,
/// and what it panics with, which may do so again, is never dropped.
pub fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        Box::leak(panic);
    }
}
