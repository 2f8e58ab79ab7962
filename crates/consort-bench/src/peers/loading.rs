//! Libraries in C and C++ that were compiled here, loaded into this process.
#![expect(unsafe_code, reason = "loading a library runs its initialization")]

use std::path::Path;

use anyhow::{Context, Result};
use libloading::Library as LoadedLibrary;

/// Loads a library for as long as the process lives: threads may run in it until the process ends.
///
/// # Errors
/// If the file cannot be loaded.
///
/// # Safety
/// The initialization of the library, and of the libraries that it needs, may run in this process.
pub(super) unsafe fn load(path: &Path) -> Result<&'static LoadedLibrary> {
    // SAFETY: the caller ensures it.
    let loaded = unsafe { LoadedLibrary::new(path) };
    let advice = "cannot load the library: a static `consort` cannot; build it from source";
    Ok(Box::leak(Box::new(loaded.context(advice)?)))
}
