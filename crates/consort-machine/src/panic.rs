//! The payload of a thread's panic.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The payload of a thread's panic.
pub type Panic = Box<dyn Any + Send>;

/// Returns the failure reason of a PE that panicked with this payload.
#[must_use]
pub fn panic_reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}

/// Drops a value of the program. If that panics, the panic's payload is leaked, because dropping it
/// may panic again.
pub fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        Box::leak(panic);
    }
}
