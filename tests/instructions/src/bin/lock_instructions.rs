//! Sections whose instructions ci/instructions counts: in a mutex with MCS over `Machine`, and in
//! one with MCS written by hand over atomics, with the same nodes. The lock is uncontended.
//!
//! Run under callgrind, which counts only inside functions whose names begin with `counted_`, and
//! writes its counts before each call of `quarter_is_over`.
//!
//! ```sh
//! cargo run --release -p consort-instructions --bin lock_instructions             # lists the mutexes
//! cargo run --release -p consort-instructions --bin lock_instructions -- mcs
//! ```

#![expect(
    unsafe_code,
    reason = "relies on a lock for exclusive access, and uses addresses of \
                                 nodes"
)]

use std::{
    env,
    hint::{black_box, spin_loop},
    process::ExitCode,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

use consort_machine::{Line, Machine, NativeMachine};
use consort_sync::{Mutex, locks::Mcs};
use lock_api::{GuardNoSend, RawMutex};

// SAFETY: only the lock below uses it, which returns each line once.
const MACHINE: NativeMachine = unsafe { NativeMachine::new() };

/// The sections of a quarter, and the quarters, as for the calls of a team.
const QUARTER: u64 = 16;
const QUARTERS: u64 = 8;

/// The words of a node.
const NEXT: usize = 0;
const WAITS: usize = 1;

/// Mellor-Crummey and Scott 1991, section 2.4, without `Machine`'s words.
struct ByHand(AtomicU64);

/// The state of the holder.
struct Held(&'static Line, GuardNoSend);

impl ByHand {
    #[cold]
    fn wait(mine: &'static Line, before: u64) {
        mine[WAITS].atomic().store(1, Relaxed);
        // SAFETY: the lock contained the address of a node.
        let node = unsafe { Line::at(before) };
        node[NEXT].atomic().store(mine.address(), Release);
        while mine[WAITS].atomic().load(Acquire) != 0 {
            spin_loop();
        }
    }

    #[cold]
    fn pass_on(mine: &'static Line) {
        let mut next = 0;
        while next == 0 {
            next = mine[NEXT].atomic().load(Acquire);
        }
        // SAFETY: the address of a node was in another one.
        let node = unsafe { Line::at(next) };
        node[WAITS].atomic().store(0, Release);
        MACHINE.give_line(mine);
    }
}

// SAFETY: as for MCS over `Machine`.
unsafe impl RawMutex for ByHand {
    const INIT: Self = Self(AtomicU64::new(0));

    type Guard = Held;

    #[inline]
    fn lock(&self) -> Held {
        let mine = MACHINE.take_line();
        mine[NEXT].atomic().store(0, Relaxed);
        let before = self.0.swap(mine.address(), AcqRel);
        if before != 0 {
            Self::wait(mine, before);
        }
        Held(mine, GuardNoSend::new())
    }

    /// Always fails; nobody tries.
    fn try_lock(&self) -> Option<Held> {
        None
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    #[inline]
    unsafe fn unlock(&self, Held(mine, _): Held) {
        let is_last = mine[NEXT].atomic().load(Relaxed) == 0
            && self.0.compare_exchange(mine.address(), 0, Release, Relaxed).is_ok();
        if is_last {
            MACHINE.give_line(mine);
        } else {
            Self::pass_on(mine);
        }
    }
}

static GENERIC: Mutex<u64, Mcs> = Mutex::with(Mcs::new(), 0);
static BY_HAND: lock_api::Mutex<ByHand, u64> = lock_api::Mutex::from_raw(ByHand::INIT, 0);

#[inline(never)]
fn counted_mcs() {
    *GENERIC.lock() += 1;
}

#[inline(never)]
fn counted_mcs_by_hand() {
    *BY_HAND.lock() += 1;
}

#[inline(never)]
fn quarter_is_over(section: u64) {
    black_box(section);
}

const SECTIONS: [(&str, fn()); 2] = [("mcs", counted_mcs), ("mcs_by_hand", counted_mcs_by_hand)];

fn main() -> ExitCode {
    let Some(name) = env::args().nth(1) else {
        SECTIONS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    };
    let Some((_, section)) = SECTIONS.iter().find(|(of_section, _)| *of_section == name) else {
        eprintln!("unknown mutex `{name}`: run without arguments for a list");
        return ExitCode::from(2);
    };
    for number in 0..QUARTERS * QUARTER {
        section();
        if (number + 1).is_multiple_of(QUARTER) {
            quarter_is_over(number);
        }
    }
    ExitCode::SUCCESS
}
