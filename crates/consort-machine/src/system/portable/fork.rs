//! Forked children, recognized by their process id.

use std::{process, sync::Once};

/// Does nothing: no memory is shared.
pub fn in_children(_: fn()) {}

/// Does nothing, like [`in_children`].
pub fn in_children_once(_: &Once, _: fn()) {}

/// A hold without effect.
#[derive(Debug)]
pub struct ForkHold(());

/// Does nothing: only a system with a known C library supports children.
#[must_use]
pub fn hold_forks() -> ForkHold {
    ForkHold(())
}

/// Does nothing: a program must not unload a library that uses Consort.
pub fn stay_loaded() {}

/// Returns the id of this process.
pub fn forks() -> u32 {
    process::id()
}

/// Returns the id of this process, like [`forks`].
pub fn forks_so_far() -> u32 {
    process::id()
}

/// Never called: children do no work.
pub fn end_child(line: &str) -> ! {
    panic!("{line}")
}
