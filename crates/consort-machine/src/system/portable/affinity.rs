//! Every processor counts as allowed, and binding is not supported.

use std::io;

pub type Mask = ();

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system does not bind threads")
}

pub fn current() -> Option<u32> {
    None
}

pub fn mask() -> io::Result<Mask> {
    Err(unsupported())
}

pub fn mask_of_process() -> io::Result<Mask> {
    Err(unsupported())
}

pub fn mask_of_parent() -> io::Result<Mask> {
    Err(unsupported())
}

pub fn set_mask((): &Mask) -> io::Result<()> {
    Err(unsupported())
}

pub fn allowed(_: io::Result<Mask>) -> Vec<u32> {
    Vec::new()
}

pub fn pin(_: u32) -> io::Result<()> {
    Err(unsupported())
}
