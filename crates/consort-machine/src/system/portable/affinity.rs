//! Every processor counts as allowed, and binding is not supported.

use std::io;

/// A set of processors, of which nothing is known.
pub type Mask = ();

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system does not bind threads")
}

/// The processor that the calling thread runs on: not known.
pub fn current() -> Option<u32> {
    None
}

/// The mask of the calling thread.
pub fn mask() -> io::Result<Mask> {
    Err(unsupported())
}

/// The mask of the process.
pub fn mask_of_process() -> io::Result<Mask> {
    Err(unsupported())
}

/// The mask of the process that has started this one.
pub fn mask_of_parent() -> io::Result<Mask> {
    Err(unsupported())
}

/// Does nothing.
pub fn set_mask((): &Mask) -> io::Result<()> {
    Err(unsupported())
}

/// The processors in a mask.
pub fn allowed(_: io::Result<Mask>) -> Vec<u32> {
    Vec::new()
}

/// Refuses to bind the calling thread.
pub fn pin(_: u32) -> io::Result<()> {
    Err(unsupported())
}
