//! The environment variables `SHMEM_SYMMETRIC_SIZE`, `SHMEM_VERSION`, `SHMEM_INFO` and
//! `SHMEM_DEBUG`. Their old names begin with `SMA_`.

use std::ffi::OsString;

use consort_fabric::environment::variable;
use consort_native::{default_heap_bytes, heap_bytes_of};

/// The variable with the size of the symmetric heap.
pub const SYMMETRIC_SIZE: &str = "SHMEM_SYMMETRIC_SIZE";

/// The settings in the environment variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The size of a PE's symmetric heap in bytes.
    pub symmetric_bytes: usize,
    /// Whether to print the library's version.
    pub version: bool,
    /// Whether to print the supported environment variables.
    pub info: bool,
    /// Whether to make expensive checks. Debug builds do by default.
    pub debug: bool,
}

/// Returns the current settings in the environment for a job of `pes` PEs.
///
/// # Errors
/// If a variable has an invalid value. The text names it and the valid values.
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

/// Checks that each process of an MPI is one PE.
///
/// # Errors
/// If the environment requests several PEs per process. Programs in other languages run these as
/// threads.
pub fn ensure_one_each() -> Result<(), String> {
    const EACH: &str = "CONSORT_PES_PER_PROCESS";
    match variable(EACH).map(|each| each.to_string_lossy().into_owned()) {
        Some(each) if each.trim() != "1" => {
            Err(format!("{EACH} is `{each}`, but a PE of OpenSHMEM is a process: unset it"))
        }
        _ => Ok(()),
    }
}

/// Returns the value of a variable, with the name under which the environment has it. `names` has
/// the current name and then the old one.
fn value_of(names: [&'static str; 2]) -> Option<(&'static str, OsString)> {
    names.into_iter().find_map(|name| variable(name).map(|value| (name, value)))
}

/// Returns a flag, or `unset` if the environment has no such variable. Any value sets it except `0`
/// and words for no.
fn flag(names: [&'static str; 2], unset: bool) -> bool {
    let words = ["0", "n", "no", "f", "false", "off"];
    value_of(names).map_or(unset, |(_, text)| {
        !words.contains(&text.to_string_lossy().to_ascii_lowercase().as_str())
    })
}
