//! Payloads of a PE's panics, and results that panic when they are dropped.

use std::{
    panic::{panic_any, resume_unwind},
    thread,
};

/// The kind of payload that is thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Text,
    Literal,
    Typed,
    /// A value that panics when it is dropped.
    Bad,
}

/// A part of every message of a panic on purpose, if it has a message.
pub(super) const MARK: &str = "on purpose";

/// A value that panics when it is dropped, but not while another panic is unwinding.
#[derive(Debug)]
pub(super) struct Bad;

impl Drop for Bad {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new("the drop of a payload, on purpose"));
        }
    }
}

impl Payload {
    pub(super) const EVERY: [Self; 4] = [Self::Text, Self::Literal, Self::Typed, Self::Bad];

    pub(super) fn throw(self) -> ! {
        match self {
            Self::Text => panic!("{} and with words: {}", MARK, 7),
            Self::Literal => panic!("on purpose"),
            Self::Typed => panic_any(7_u64),
            Self::Bad => panic_any(Bad),
        }
    }
}

/// The result of a PE: panics when it is dropped, if armed and not disarmed.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    pub(super) is_armed: bool,
}

impl Parcel {
    pub(super) fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if self.is_armed && !thread::panicking() {
            resume_unwind(Box::new("the drop of a result, on purpose"));
        }
    }
}
