//! What the environment says: `SHMEM_SYMMETRIC_SIZE`, `SHMEM_VERSION`, `SHMEM_INFO`, `SHMEM_DEBUG`.
//! By their old names they begin with `SMA_`.

use std::ffi::OsString;

use consort_fabric::environment::variable;
use consort_native::{default_heap_bytes, heap_bytes_of};

/// The variable that gives the size of the symmetric heap.
pub const SYMMETRIC_SIZE: &str = "SHMEM_SYMMETRIC_SIZE";

/// What the variables of the environment say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Bytes of the symmetric heap of a PE.
    pub symmetric_bytes: usize,
    /// Whether to print the library's version.
    pub version: bool,
    /// Whether to print what the environment may say.
    pub info: bool,
    /// Whether to make the checks that take long, as a build for debugging does unless told not to.
    pub debug: bool,
}

/// Returns what the environment says now to a job of `pes` PEs.
///
/// # Errors
/// A variable that is not understood, and what it may be.
pub fn read(pes: u32) -> Result<Environment, String> {
    let bytes = match value_of([SYMMETRIC_SIZE, "SMA_SYMMETRIC_SIZE"]) {
        Some((name, text)) => heap_bytes_of(name, &text.to_string_lossy()),
        None => Ok(default_heap_bytes(pes)),
    };
    Ok(Environment {
        symmetric_bytes: bytes.map_err(|error| error.to_string())?,
        version: flag(["SHMEM_VERSION", "SMA_VERSION"], false),
        info: flag(["SHMEM_INFO", "SMA_INFO"], false),
        debug: flag(["SHMEM_DEBUG", "SMA_DEBUG"], cfg!(debug_assertions)),
    })
}

/// Checks that each process of an MPI is to be one PE.
///
/// # Errors
/// That it is to be several, which are threads in other languages.
pub fn ensure_one_each() -> Result<(), String> {
    const EACH: &str = "CONSORT_PES_PER_PROCESS";
    match variable(EACH).map(|each| each.to_string_lossy().into_owned()) {
        Some(each) if each.trim() != "1" => {
            Err(format!("{EACH} is `{each}`, but a PE of OpenSHMEM is a process: unset it"))
        }
        _ => Ok(()),
    }
}

/// The first of a variable's names, the old one last, that the environment has, and its value.
fn value_of(names: [&'static str; 2]) -> Option<(&'static str, OsString)> {
    names.into_iter().find_map(|name| variable(name).map(|value| (name, value)))
}

/// A flag, `unset` where the environment has no such variable. Any value sets it but `0` and words
/// for no.
fn flag(names: [&'static str; 2], unset: bool) -> bool {
    let words = ["0", "n", "no", "f", "false", "off"];
    value_of(names).map_or(unset, |(_, text)| {
        !words.contains(&text.to_string_lossy().to_ascii_lowercase().as_str())
    })
}
