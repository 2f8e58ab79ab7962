//! Every processor counts as allowed, and binding is not supported.

use std::io;

/// A set of processors; nothing is known about it.
pub type Mask = ();

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system does not bind threads")
}

/// Returns `None`: the processor of the calling thread is not known.
pub fn current() -> Option<u32> {
    None
}

/// Fails: the mask of the calling thread is not known.
pub fn mask() -> io::Result<Mask> {
    Err(unsupported())
}

/// Fails: the mask of the process is not known.
pub fn mask_of_process() -> io::Result<Mask> {
    Err(unsupported())
}

/// Fails: the mask of the parent process is not known.
pub fn mask_of_parent() -> io::Result<Mask> {
    Err(unsupported())
}

/// Fails: this system does not bind threads.
pub fn set_mask((): &Mask) -> io::Result<()> {
    Err(unsupported())
}

/// Returns no processors.
pub fn allowed(_: io::Result<Mask>) -> impl Iterator<Item = u32> {
    std::iter::empty()
}

/// Refuses to bind the calling thread.
pub fn pin(_: u32) -> io::Result<()> {
    Err(unsupported())
}
