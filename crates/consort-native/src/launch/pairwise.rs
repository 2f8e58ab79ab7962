//! How long messages may be that two PEs exchange in lines which both write.
//!
//! A line that both write comes back by itself, which an Intel processor rewards for messages of up
//! to three words. An AMD processor takes one word well in this way, and two and three words better
//! as ordinary messages (`docs/measured-choices.md`).

use std::sync::OnceLock;

use consort_fabric::{PAIRWISE_BYTES, environment::variable};

/// Another length, in bytes, for measurements and tests.
const OTHER: &str = "CONSORT_PAIRWISE";
/// The bytes of one word.
const WORD: usize = size_of::<u64>();

/// The longest such message in bytes, the same for all PEs of this machine.
pub(crate) fn pairwise_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
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
