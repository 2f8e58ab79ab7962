//! What a PE panics with, and results that panic when they are dropped.

use std::{
    panic::{panic_any, resume_unwind},
    thread,
};

/// What is thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Text,
    Literal,
    Typed,
    /// A value that panics when it is dropped.
    Bad,
}

/// In what a PE says that panics on purpose, where it can say something.
pub(super) const MARK: &str = "on purpose";

/// Panics when it is dropped, but not while another panic is under way.
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

/// What a PE returns: panics when it is dropped, if that was asked for and not taken back.
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
