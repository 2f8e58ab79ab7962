//! Every processor counts as allowed, and binding is not supported.

use std::io;

pub(crate) type Mask = ();

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system does not bind threads")
}

pub(crate) fn current() -> Option<u32> {
    None
}

pub(crate) fn mask() -> io::Result<Mask> {
    Err(unsupported())
}

pub(crate) fn mask_of_process() -> io::Result<Mask> {
    Err(unsupported())
}

pub(crate) fn mask_of_parent() -> io::Result<Mask> {
    Err(unsupported())
}

pub(crate) fn set_mask((): &Mask) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn allowed(_: io::Result<Mask>) -> Vec<u32> {
    Vec::new()
}

pub(crate) fn pin(_: u32) -> io::Result<()> {
    Err(unsupported())
}
