//! Stores that bypass the caches, and the fence that makes them visible: `movnti` and `sfence` on
//! x86-64.

#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "instructions that the language has no name for")
)]

use std::sync::atomic::{Ordering, fence};

use crate::Word;

/// Writes a word past the caches.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn store(word: &Word, value: u64) {
    // SAFETY: it writes all 8 bytes of a borrowed atomic at once, as a relaxed store does. Other
    // threads may see it after later stores of this thread; in Rust's model that is also true of a
    // relaxed store. But a later release must not be seen before it, so the caller of
    // `Machine::stream` fences first. The language's own streaming stores would not be atomic.
    unsafe {
        std::arch::asm!(
            "movnti qword ptr [{}], {}",
            in(reg) std::ptr::from_ref(word),
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

/// Writes a word.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(super) fn store(word: &Word, value: u64) {
    word.atomic().store(value, Ordering::Relaxed);
}

/// Issues a fence that also orders streaming stores.
#[inline(always)]
pub(super) fn order(by: Ordering) {
    fence(by);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if matches!(by, Ordering::Release | Ordering::AcqRel) {
        // SAFETY: every processor of this architecture has the instruction. It orders all stores,
        // as the instruction of a sequentially consistent fence does.
        unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::Ordering::{Acquire, Relaxed, Release},
        thread,
    };

    use crate::Line;

    use super::*;

    /// The data of each message is streamed. Its number is published after a release fence.
    #[test]
    fn streamed_data_is_seen_after_fence_and_release() {
        const MESSAGES: u64 = 50_000;
        let lines = [const { Line::new() }; 3];
        let [data, number, taken] = &lines;
        thread::scope(|scope| {
            scope.spawn(|| {
                for message in 1..=MESSAGES {
                    while taken[0].atomic().load(Acquire) + 1 < message {
                        thread::yield_now();
                    }
                    data.iter().for_each(|word| store(word, message));
                    order(Release);
                    number[0].atomic().store(message, Relaxed);
                }
            });
            for message in 1..=MESSAGES {
                while number[0].atomic().load(Acquire) < message {
                    thread::yield_now();
                }
                assert!(data.iter().all(|word| word.atomic().load(Relaxed) == message));
                taken[0].atomic().store(message, Release);
            }
        });
    }
}
