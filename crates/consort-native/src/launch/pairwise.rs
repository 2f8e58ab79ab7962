//! The longest messages that two PEs exchange in lines that both write.
//!
//! When a PE reads the peer's slot in such a line, the line also brings the PE's own slot back to
//! its cache. On an Intel processor this pays off for messages of up to three words. On an AMD
//! processor it pays off for one word; two and three words are faster as ordinary messages
//! (`docs/measured-choices.md`).

use consort_fabric::{PAIRWISE_BYTES, environment::variable};
use consort_machine::fork_safe::Found;

/// The environment variable that sets another length, in bytes, for measurements and tests.
const OTHER: &str = "CONSORT_PAIRWISE";
/// The size of a word in bytes.
const WORD: usize = size_of::<u64>();

/// Returns the length of the longest such message in bytes. It is the same for all PEs of this
/// machine.
pub(crate) fn pairwise_bytes() -> usize {
    static BYTES: Found<usize> = Found::new();
    *BYTES.get_or_find(|| {
        let other = variable(OTHER).and_then(|text| text.to_str()?.parse().ok());
        let by_maker = if is_intel() { PAIRWISE_BYTES } else { WORD };
        other.map_or(by_maker, |bytes: usize| bytes.clamp(WORD, PAIRWISE_BYTES))
    })
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn is_intel() -> bool {
    let maker = std::arch::x86_64::__cpuid(0);
    [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn is_intel() -> bool {
    false
}
