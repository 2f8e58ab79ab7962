//! The size of symmetric heaps: the default, and the value of an environment variable.
//!
//! A heap is address space, and takes memory only when it is used. So all heaps together may be
//! larger than the machine's memory. A single heap may not be larger, because no program could use
//! all of it.

use consort_machine::{
    limits::{MemoryLimit, most},
    usage::memory_bytes,
};

use super::config_error::ConfigError;

/// The default size of a heap, as in Sandia OpenSHMEM.
const DEFAULT_BYTES: usize = 512 << 20;

/// Returns the size in bytes of the heap of each of `pes` PEs if neither the program nor the
/// environment sets it: 512 MiB. Under a memory limit (`ulimit -v`, `ulimit -d`) all heaps together
/// take at most a quarter of it.
#[must_use]
pub fn default_heap_bytes(pes: u32) -> usize {
    let most = MemoryLimit::EVERY.into_iter().filter_map(most).min();
    let each = most.map_or(usize::MAX, |most| most / 4 / pes.max(1) as usize);
    DEFAULT_BYTES.min(each) / PAGE * PAGE
}

/// The unit of heap sizes.
const PAGE: usize = 4096;

/// Returns the size in bytes of a heap from the value of a variable: a number, possibly with a
/// fraction, and K, M, G or T for powers of 1024.
///
/// # Errors
/// When the text is not a size, or the machine has less memory.
pub fn heap_bytes_of(name: &'static str, text: &str) -> Result<usize, ConfigError> {
    let sizes = "a number of bytes up to 64T, such as 512M, with K, M, G or T";
    let bytes = size_of_text(text.trim()).ok_or_else(|| ConfigError::new(name, text, sizes))?;
    match memory_bytes() {
        Some(there) if bytes > there => {
            let less = format!("less than the machine's memory of {there} bytes for each PE");
            Err(ConfigError::new(name, text, less))
        }
        _ => Ok(bytes),
    }
}

/// Parses a size in bytes: at least one byte, and at most 64 TiB.
fn size_of_text(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes() {
        [.., b'k' | b'K'] => (&text[..text.len() - 1], 10),
        [.., b'm' | b'M'] => (&text[..text.len() - 1], 20),
        [.., b'g' | b'G'] => (&text[..text.len() - 1], 30),
        [.., b't' | b'T'] => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let bytes = digits.parse::<f64>().ok()? * f64::from(2_u32).powi(shift);
    if !(1.0..=2_f64.powi(46)).contains(&bytes) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in this range")]
    Some(bytes.ceil() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{config::Config, job::Job};

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
            assert_eq!(size_of_text(text), Some(bytes), "{text}");
        }
        assert_eq!(heap_bytes_of("HEAP", " 64M\n"), Ok(64 << 20));
    }

    #[test]
    fn invalid_size_is_refused() {
        for text in ["", "0", "M", "-1", "1e9", "12x", "1 2", "1..2", "inf", "nan", "99999T", "é"]
        {
            let error = heap_bytes_of("HEAP", text).expect_err("no size").to_string();
            assert!(error.starts_with(&format!("HEAP is `{text}`: use ")), "{error}");
        }
    }

    /// Heaps only reserve memory. Machines below 512 GiB have less memory than 1024 PEs may
    /// reserve.
    #[test]
    fn default_heaps_may_together_be_larger_than_the_memory() {
        let Some(there) = memory_bytes() else { return };
        let pes = u32::try_from(there / DEFAULT_BYTES + 2).map_or(1024, |pes| pes.min(1024));
        let heap_bytes = default_heap_bytes(pes);
        let job = Job::new(Config { pes, here: pes, heap_bytes, ..Config::of_two() });
        assert!(job.is_ok(), "{pes} heaps of {heap_bytes} bytes");
    }

    #[test]
    fn heap_larger_than_the_memory_is_refused() {
        let bytes = heap_bytes_of("HEAP", "64T");
        match memory_bytes() {
            Some(there) => {
                let error = bytes.expect_err("no machine has it").to_string();
                assert!(error.starts_with("HEAP is `64T`: use less than "), "{error}");
                assert!(error.contains(&there.to_string()), "{error}");
            }
            None => assert_eq!(bytes, Ok(64 << 40)),
        }
    }
}
