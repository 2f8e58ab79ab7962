//! Concurrent objects of words: a counter, a stack and a queue. Each is sequential code, which any
//! scheme makes concurrent, on any [`Machine`](consort_fabric::Machine).
//!
//! Values have 62 bits, since the answers of some schemes have a bit less than a word, and one more
//! number says that an object is empty.

mod counter;
mod queue;
mod stack;

pub use counter::Counter;
pub use queue::{Part, Queue};
pub use stack::Stack;

/// The first number that is no value.
pub const VALUES: u64 = 1 << 62;

/// The result of a removal from an empty object.
const EMPTY: u64 = VALUES;

/// The value of a result; `None` if the object was empty.
fn value(result: u64) -> Option<u64> {
    (result != EMPTY).then_some(result)
}

/// # Panics
/// When a number is no value.
fn check(value: u64) {
    assert!(value < VALUES, "a value has 62 bits; {value:#x} has more");
}
