//! Processes share no memory.

#![expect(unsafe_code, reason = "has the interface of what does so by addresses")]

use std::{fs::File, io};

pub(crate) fn memory_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn number_of(_: &File) -> i32 {
    -1
}

pub(crate) fn inherited(_: i32, _: u32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn extend(_: &File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn clear_part(_: &File, _: u64, _: u64) {}

pub(crate) fn let_copy(_: u32) {}

/// # Safety
/// Always safe.
pub(crate) unsafe fn read_from(_: u32, _: *mut u8, _: *mut u8, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// # Safety
/// Always safe.
pub(crate) unsafe fn write_to(_: u32, _: *mut u8, _: *mut u8, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
