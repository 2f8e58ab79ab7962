//! Children that a process forks: they are told by their numbers.

use std::{process, sync::Once};

/// Does nothing: no memory is shared.
pub fn in_children(_: fn()) {}

/// As [`in_children`].
pub fn in_children_once(_: &Once, _: fn()) {}

/// Holds nothing off.
pub struct Hold(());

/// Does nothing: children are for systems with a C library that is known.
#[must_use]
pub fn hold() -> Hold {
    Hold(())
}

/// Does nothing: a program must not unload a library that uses Consort.
pub fn stay_loaded() {}

/// The number of this process.
pub fn forks() -> u32 {
    process::id()
}

/// As [`forks`].
pub fn forks_so_far() -> u32 {
    process::id()
}

/// Is never called: no work is done in children.
pub fn end_child(line: &str) -> ! {
    panic!("{line}")
}
