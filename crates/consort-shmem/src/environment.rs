//! What the environment says: `SHMEM_SYMMETRIC_SIZE`, `SHMEM_VERSION`, `SHMEM_INFO`, `SHMEM_DEBUG`.
//! By their old names they begin with `SMA_`.

use std::ffi::OsString;

use consort_fabric::environment::variable;
use consort_native::usage::memory_bytes;

/// The variable that gives the size of the symmetric heap.
pub const SYMMETRIC_SIZE: &str = "SHMEM_SYMMETRIC_SIZE";

/// The size of the symmetric heap without that variable, as in Sandia OpenSHMEM. It is address
/// space: memory is taken when it is used.
const DEFAULT_BYTES: usize = 512 << 20;

/// What the variables of the environment say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Bytes of the symmetric heap of a PE.
    pub symmetric_bytes: usize,
    /// Whether a variable gives that size.
    pub is_size_given: bool,
    /// Whether to print the library's version.
    pub version: bool,
    /// Whether to print what the environment may say.
    pub info: bool,
    /// Whether to make the checks that take long, as a build for debugging does unless told not to.
    pub debug: bool,
}

/// What the environment says now.
///
/// # Errors
/// A variable that is not understood, and what it may be.
pub fn read() -> Result<Environment, String> {
    let size = value_of(SYMMETRIC_SIZE).map(|text| text.to_string_lossy().into_owned());
    Ok(Environment {
        is_size_given: size.is_some(),
        symmetric_bytes: size.map_or(Ok(DEFAULT_BYTES), |text| size_of_text(&text))?,
        version: flag("SHMEM_VERSION", false),
        info: flag("SHMEM_INFO", false),
        debug: flag("SHMEM_DEBUG", cfg!(debug_assertions)),
    })
}

impl Environment {
    /// Checks that the heaps of `pes` PEs may lie in the machine's memory, if the environment
    /// gives their size.
    ///
    /// # Errors
    /// That they are larger.
    pub fn ensure_fits(&self, pes: u32) -> Result<(), String> {
        match memory_bytes().filter(|_| self.is_size_given) {
            Some(there) if self.symmetric_bytes.saturating_mul(pes as usize) > there => {
                Err(format!(
                    "{SYMMETRIC_SIZE} asks for {} bytes on each of {pes} PEs, but the machine's \
                     memory has {there} bytes: set it to {} or less, or run fewer PEs on this \
                     machine",
                    self.symmetric_bytes,
                    there / (pes as usize).max(1)
                ))
            }
            _ => Ok(()),
        }
    }
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

/// A size: a number, which may have a fraction, and K, M, G or T for powers of 1024.
fn size_of_text(text: &str) -> Result<usize, String> {
    let wrong = || {
        format!(
            "{SYMMETRIC_SIZE} is `{text}`: use a number of bytes such as 512M, with K, M, G or T"
        )
    };
    let (number, shift) = match text.trim().as_bytes() {
        [.., b'k' | b'K'] => (1, 10),
        [.., b'm' | b'M'] => (1, 20),
        [.., b'g' | b'G'] => (1, 30),
        [.., b't' | b'T'] => (1, 40),
        _ => (0, 0),
    };
    let digits = &text.trim()[..text.trim().len() - number];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let bytes = value * f64::from(2_u32).powi(shift);
    if bytes < 1.0 || bytes > 2_f64.powi(46) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in this range")]
    Ok(bytes.ceil() as usize)
}

#[cfg(test)]
mod tests {
    use super::size_of_text;

    #[test]
    fn sizes_have_units_and_fractions() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("1.5k", 1536),
            ("2M", 2 << 20),
            ("0.5G", 1 << 29),
            ("1t", 1 << 40),
        ] {
            assert_eq!(size_of_text(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn rubbish_is_refused() {
        for text in ["", "0", "M", "-1", "1e9", "12x", "1 2", "1..2", "inf", "nan", "99999T"] {
            assert!(size_of_text(text).is_err(), "{text}");
        }
    }
}
