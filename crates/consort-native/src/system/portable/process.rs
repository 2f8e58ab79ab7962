//! Processes cannot share files in memory.

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

pub(crate) fn file_of(_: u32, _: u32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn host_key() -> Option<u64> {
    None
}

pub(crate) fn extend(_: &File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn clear_part(_: &File, _: u64, _: u64) {}
