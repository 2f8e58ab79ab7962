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
    let size = value_of(SYMMETRIC_SIZE).map(|text| text.to_string_lossy().into_owned());
    let bytes = size
        .map_or_else(|| Ok(default_heap_bytes(pes)), |text| heap_bytes_of(SYMMETRIC_SIZE, &text));
    Ok(Environment {
        symmetric_bytes: bytes.map_err(|error| error.to_string())?,
        version: flag("SHMEM_VERSION", false),
        info: flag("SHMEM_INFO", false),
        debug: flag("SHMEM_DEBUG", cfg!(debug_assertions)),
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

/// The value of a variable, or of that with its old name.
fn value_of(name: &str) -> Option<OsString> {
    variable(name).or_else(|| variable(&name.replace("SHMEM_", "SMA_")))
}

/// A flag, `unset` where the environment has no such variable. Any value sets it but `0` and words
/// for no.
fn flag(name: &str, unset: bool) -> bool {
    let words = ["0", "n", "no", "f", "false", "off"];
    value_of(name).map_or(unset, |text| {
        !words.contains(&text.to_string_lossy().to_ascii_lowercase().as_str())
    })
}
