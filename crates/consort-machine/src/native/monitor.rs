//! Processor instructions that wait for a write to a line: UMWAIT (Intel), MWAITX (AMD), WFE (ARM).
//!
//! A thread that polls consumes power, and slows the other hardware thread of its core. These
//! instructions do neither. But they notice a write later than a poll does, so only a wait that has
//! lasted for a while uses them, in place of the polls between two yields.
//!
//! The program detects at run time whether the processor has them.

#![cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)),
    expect(unsafe_code, reason = "instructions that the language has no name for")
)]

#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
use self::arm as instructions;
#[cfg(not(any(
    all(target_arch = "x86_64", not(miri)),
    all(target_arch = "aarch64", target_os = "linux", not(miri))
)))]
use self::none as instructions;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use self::x86 as instructions;

pub(super) use instructions::{is_supported, wait, watch};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::{
        asm,
        x86_64::{__cpuid, __cpuid_count, _rdtsc},
    };

    use crate::{Word, fork_safe::Found};

    /// Timestamp-counter cycles after which a wait ends by itself, about as long as a few polls.
    const LONGEST: u32 = 5_000;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Instructions {
        Umwait,
        Mwaitx,
        None,
    }

    /// Returns the instructions that the processor reports. An operating system may disable them,
    /// and then they are not reported.
    pub(super) fn instructions() -> Instructions {
        static FOUND: Found<Instructions> = Found::new();
        *FOUND.get_or_find(|| {
            let has = |leaf: u32, bit: u32| {
                __cpuid(leaf & 0x8000_0000).eax >= leaf
                    && __cpuid_count(leaf, 0).ecx >> bit & 1 == 1
            };
            if has(7, 5) {
                Instructions::Umwait
            } else if has(0x8000_0001, 29) {
                Instructions::Mwaitx
            } else {
                Instructions::None
            }
        })
    }

    pub(crate) fn is_supported() -> bool {
        instructions() != Instructions::None
    }

    /// Makes the processor watch the line of this word from now on.
    pub(crate) fn watch(word: &Word) {
        watch_by(instructions(), word);
    }

    /// Waits until the watched line, if any, is written, for at most a few microseconds.
    pub(crate) fn wait() {
        wait_by(instructions());
    }

    pub(super) fn watch_by(instructions: Instructions, word: &Word) {
        let word = std::ptr::from_ref(word);
        match instructions {
            // SAFETY: the processor has the instruction, which reads the word as a load does.
            Instructions::Umwait => unsafe { asm!("umonitor {}", in(reg) word, options(nostack)) },
            // SAFETY: as above. No extension and no hint is requested.
            Instructions::Mwaitx => unsafe {
                asm!("monitorx", in("rax") word, in("ecx") 0, in("edx") 0, options(nostack));
            },
            Instructions::None => {}
        }
    }

    pub(super) fn wait_by(instructions: Instructions) {
        match instructions {
            Instructions::Umwait => {
                // SAFETY: the processor has a timestamp counter.
                let end = unsafe { _rdtsc() } + u64::from(LONGEST);
                let [low, high] = [end & 0xffff_ffff, end >> 32];
                // SAFETY: the processor has the instruction. It changes no memory. If no line is
                // watched, it ends at once. State 1 is the one that it leaves faster.
                unsafe {
                    asm!("umwait {:e}", in(reg) 1, in("rax") low, in("rdx") high, options(nostack));
                }
            }
            // SAFETY: as above. State 15 is the one that it leaves fastest; bit 1 of `ecx` says
            // that `ebx` holds the longest time. LLVM reserves `ebx`, so its value is restored.
            Instructions::Mwaitx => unsafe {
                asm!(
                    "xchg rbx, {longest}",
                    "mwaitx",
                    "mov rbx, {longest}",
                    longest = inout(reg) u64::from(LONGEST) => _,
                    in("eax") 0xf0,
                    in("ecx") 2,
                    options(nostack),
                );
            },
            Instructions::None => {}
        }
    }
}

#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
mod arm {
    use std::arch::asm;

    use crate::Word;

    /// The kernel's flag for a timer that ends each wait within 100 us.
    const HAS_EVENT_STREAM: libc::c_ulong = 1 << 2;

    pub(crate) fn is_supported() -> bool {
        // SAFETY: the call reads what the system gave this process at its start.
        let has = unsafe { libc::getauxval(libc::AT_HWCAP) };
        has & HAS_EVENT_STREAM != 0
    }

    /// Makes the processor watch the line of this word from now on.
    pub(crate) fn watch(word: &Word) {
        // SAFETY: it loads the word, which is borrowed. Nothing is stored, so the only effect of
        // the monitor that it sets is to end a wait.
        unsafe {
            asm!(
                "ldxr {value}, [{word}]",
                value = out(reg) _,
                word = in(reg) std::ptr::from_ref(word),
                options(nostack, preserves_flags),
            );
        }
    }

    /// Waits until the watched line is written, for at most 100 us.
    pub(crate) fn wait() {
        // SAFETY: it changes nothing.
        unsafe { asm!("wfe", options(nostack, preserves_flags)) }
    }
}

#[cfg(not(any(
    all(target_arch = "x86_64", not(miri)),
    all(target_arch = "aarch64", target_os = "linux", not(miri))
)))]
mod none {
    use crate::Word;

    pub const fn is_supported() -> bool {
        false
    }

    pub const fn watch(_: &Word) {}

    pub const fn wait() {}
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::Ordering::{Relaxed, Release},
        thread,
        time::Duration,
    };

    use crate::Line;

    use super::*;

    #[test]
    fn a_wait_ends_by_a_store_or_by_itself() {
        let line = Line::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(2));
                line[3].atomic().store(1, Release);
            });
            let mut waits = 0_u64;
            while line[3].atomic().load(Relaxed) == 0 {
                watch(&line[0]);
                wait();
                wait(); // no line is watched now
                waits += 1;
            }
            assert!(waits > 0);
        });
    }
}
