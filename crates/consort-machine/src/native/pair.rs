//! Atomic compare-exchange of two words of a line: `cmpxchg16b` on x86-64.
//!
//! The first x86-64 processors lacked it, so it is detected at run time. There is no substitute
//! elsewhere: an algorithm then packs both values into one word.

#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "an instruction that the language has no name for")
)]

use crate::Pair;

/// Returns whether the processor has the instruction.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("cmpxchg16b")
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) const fn is_supported() -> bool {
    false
}

/// Writes `new` if the pair is `current`. Returns the old values: `Ok` if they were replaced.
///
/// # Panics
/// When the processor does not have the instruction.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn compare_exchange(
    pair: &Pair,
    current: [u64; 2],
    new: [u64; 2],
) -> Result<[u64; 2], [u64; 2]> {
    assert!(is_supported(), "this processor exchanges no pairs of words");
    let [mut low, mut high] = current;
    // SAFETY: the processor has the instruction, as was just asserted. Its operand is two atomics
    // in one allocation, aligned to 16 bytes and borrowed for the duration. For the rest of the
    // program it is two consecutive sequentially consistent read-modify-writes of one word each
    // (they write what they read if the exchange fails), with no other thread in between: one of
    // the executions that those two allow anyway. So it is not a race if others read and write the
    // words one by one, with 8-byte atomics. LLVM reserves the register rbx, so its value is
    // restored at the end; the operand is addressed through rdi, not rbx.
    unsafe {
        std::arch::asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "mov rbx, rsi",
            in("rdi") std::ptr::from_ref(pair),
            inout("rsi") new[0] => _,
            in("rcx") new[1],
            inout("rax") low,
            inout("rdx") high,
            options(nostack),
        );
    }
    // The old values are in rdx and rax. On success they are the values that were compared.
    let old = [low, high];
    if old == current { Ok(old) } else { Err(old) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) fn compare_exchange(_: &Pair, _: [u64; 2], _: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
    panic!("this processor exchanges no pairs of words")
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use std::{
        sync::atomic::Ordering::{Acquire, Relaxed},
        thread,
    };

    use crate::Line;

    use super::*;

    #[test]
    fn both_words_are_exchanged_or_none() {
        if !is_supported() {
            return;
        }
        let line = Line::new();
        let pair = &line.pairs()[3];
        assert_eq!(compare_exchange(pair, [0, 0], [u64::MAX, 7]), Ok([0, 0]));
        for other in [[0, 7], [u64::MAX, 0]] {
            assert_eq!(compare_exchange(pair, other, [1, 1]), Err([u64::MAX, 7]));
        }
        let words = [6, 7].map(|word: usize| line[word].atomic().load(Relaxed));
        assert_eq!(words, [u64::MAX, 7]);
        assert!(line[..6].iter().all(|word| word.atomic().load(Relaxed) == 0));
    }

    /// Threads add to one word or the other, with pair exchanges and with single-word atomics.
    #[test]
    fn pair_exchanges_and_word_atomics_lose_nothing() {
        const EACH: u64 = 20_000;
        if !is_supported() {
            return;
        }
        let line = Line::new();
        let pair = &line.pairs()[1];
        let add = |[first, second]: [u64; 2]| [first + 1, second + 2];
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = [0, 0];
                    for _ in 0..EACH {
                        while let Err(old) = compare_exchange(pair, seen, add(seen)) {
                            seen = old;
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..EACH {
                    pair[0].atomic().fetch_add(1, Relaxed);
                }
            });
        });
        let [first, second] = [0, 1].map(|word: usize| pair[word].atomic().load(Acquire));
        assert_eq!([first, second], [3 * EACH, 4 * EACH]);
    }
}
