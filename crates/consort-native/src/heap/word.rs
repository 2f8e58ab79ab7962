//! Words of the heaps for atomic operations, of 4 and of 8 bytes.
//!
//! All atomic accesses to heaps are to aligned 8-byte words, because Rust does not define atomics
//! of two sizes on the same bytes. So an operation on 4 bytes is an operation on the 8 bytes around
//! them that leaves the other half unchanged. Cost: a compare-exchange, and one more for each
//! concurrent change by another PE to the same 8 bytes.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use consort_fabric::{Atomic, Signal};

/// The size of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes. Only the low 32 bits of operands count.
    Four,
    /// 8 bytes.
    Eight,
}

impl Width {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// A word of a heap: all or one half of 8 aligned bytes.
#[derive(Clone, Copy)]
pub(crate) struct HeapWord<'j> {
    whole: &'j AtomicU64,
    /// The shift of the word within the 8 bytes, if it is half of them.
    half: Option<u32>,
}

impl<'j> HeapWord<'j> {
    /// Returns the word of `width` at offset `at` of a heap. `whole` is the 8 bytes around it.
    pub(super) fn new(whole: &'j AtomicU64, at: usize, width: Width) -> Self {
        let is_first = at.is_multiple_of(8);
        let half = match width {
            Width::Eight => None,
            Width::Four if is_first == cfg!(target_endian = "little") => Some(0),
            Width::Four => Some(32),
        };
        Self { whole, half }
    }

    #[inline(always)]
    fn of(self, bits: u64) -> u64 {
        match self.half {
            None => bits,
            Some(shift) => bits >> shift & u64::from(u32::MAX),
        }
    }

    /// Returns the 8 bytes with the half at `shift` replaced by `word`.
    fn with(bits: u64, shift: u32, word: u64) -> u64 {
        let mask = u64::from(u32::MAX) << shift;
        bits & !mask | word << shift & mask
    }

    /// Returns the word's value. Acquire: pairs with the release in `signal`.
    #[inline(always)]
    pub(crate) fn load(self) -> u64 {
        self.of(self.whole.load(Acquire))
    }

    /// Performs a sequentially consistent operation. Returns the old value.
    pub(super) fn atomic(self, operation: Atomic) -> u64 {
        let Self { whole, half } = self;
        let Some(shift) = half else { return Self::on_whole(whole, operation) };
        if operation == Atomic::Load {
            return self.of(whole.load(SeqCst));
        }
        let next = |bits| {
            let word = Self::next(self.of(bits), operation)?;
            Some(Self::with(bits, shift, word))
        };
        let (Ok(before) | Err(before)) = whole.fetch_update(SeqCst, SeqCst, next);
        self.of(before)
    }

    #[inline(always)]
    fn on_whole(whole: &AtomicU64, operation: Atomic) -> u64 {
        match operation {
            Atomic::Load => whole.load(SeqCst),
            Atomic::Swap(new) => whole.swap(new, SeqCst),
            Atomic::CompareSwap { current, new } => {
                let (Ok(before) | Err(before)) =
                    whole.compare_exchange(current, new, SeqCst, SeqCst);
                before
            }
            Atomic::FetchAdd(by) => whole.fetch_add(by, SeqCst),
            Atomic::FetchAnd(by) => whole.fetch_and(by, SeqCst),
            Atomic::FetchOr(by) => whole.fetch_or(by, SeqCst),
            Atomic::FetchXor(by) => whole.fetch_xor(by, SeqCst),
        }
    }

    /// Returns the new value of a 4-byte word after an operation, or `None` if it does not change.
    fn next(word: u64, operation: Atomic) -> Option<u64> {
        match operation {
            Atomic::Load => None,
            Atomic::Swap(new) => Some(new),
            Atomic::CompareSwap { current, new } => {
                (word == current & u64::from(u32::MAX)).then_some(new)
            }
            Atomic::FetchAdd(by) => Some(word.wrapping_add(by)),
            Atomic::FetchAnd(by) => Some(word & by),
            Atomic::FetchOr(by) => Some(word | by),
            Atomic::FetchXor(by) => Some(word ^ by),
        }
    }

    /// Changes the word. Release: a PE that sees the change sees everything that this thread did
    /// before.
    #[inline(always)]
    pub(super) fn signal(self, how: Signal) {
        let Self { whole, half } = self;
        match (half, how) {
            (None, Signal::Set(value)) => whole.store(value, Release),
            (None, Signal::Add(value)) => {
                whole.fetch_add(value, Release);
            }
            (Some(shift), _) => {
                let next = |word: u64| match how {
                    Signal::Set(value) => value,
                    Signal::Add(value) => word.wrapping_add(value),
                };
                let next = |bits| Some(Self::with(bits, shift, next(self.of(bits))));
                let _ = whole.fetch_update(Release, Relaxed, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operations() -> impl Strategy<Value = Atomic> {
        // Values repeat often, so that some compare-and-swaps succeed.
        let word = || prop_oneof![0_u64..3, any::<u64>()];
        prop_oneof![
            Just(Atomic::Load),
            word().prop_map(Atomic::Swap),
            (word(), word()).prop_map(|(current, new)| Atomic::CompareSwap { current, new }),
            word().prop_map(Atomic::FetchAdd),
            word().prop_map(Atomic::FetchAnd),
            word().prop_map(Atomic::FetchOr),
            word().prop_map(Atomic::FetchXor),
        ]
    }

    /// Performs an operation on a single 4-byte word: the oracle.
    fn on_u32(word: &mut u32, operation: Atomic) -> u32 {
        let before = *word;
        #[expect(clippy::cast_possible_truncation, reason = "the oracle uses 4 bytes")]
        let low = |bits: u64| bits as u32;
        match operation {
            Atomic::Load => {}
            Atomic::Swap(new) => *word = low(new),
            Atomic::CompareSwap { current, new } if before == low(current) => *word = low(new),
            Atomic::CompareSwap { .. } => {}
            Atomic::FetchAdd(by) => *word = before.wrapping_add(low(by)),
            Atomic::FetchAnd(by) => *word = before & low(by),
            Atomic::FetchOr(by) => *word = before | low(by),
            Atomic::FetchXor(by) => *word = before ^ low(by),
        }
        before
    }

    proptest! {
        #[test]
        fn two_words_of_four_bytes_are_apart(
            steps in prop::collection::vec((any::<bool>(), operations()), 0..100),
        ) {
            let whole = AtomicU64::new(0);
            let mut words = [0_u32; 2];
            for (is_second, operation) in steps {
                let at = usize::from(is_second);
                let before = HeapWord::new(&whole, 4 * at, Width::Four).atomic(operation);
                prop_assert_eq!(before, u64::from(on_u32(&mut words[at], operation)));
                // The words as they are in memory.
                let bytes = whole.load(Relaxed).to_ne_bytes();
                let expected = words.map(u32::to_ne_bytes).concat();
                prop_assert_eq!(&bytes[..], &expected[..]);
            }
        }
    }

    #[test]
    fn signal_changes_only_its_word() {
        let whole = AtomicU64::new(u64::MAX);
        let [first, second] = [0, 4].map(|at| HeapWord::new(&whole, at, Width::Four));
        first.signal(Signal::Set(1 << 40 | 7));
        assert_eq!((first.load(), second.load()), (7, u64::from(u32::MAX)));
        second.signal(Signal::Add(3));
        assert_eq!((first.load(), second.load()), (7, 2), "it wraps around");
        let whole = HeapWord::new(&whole, 0, Width::Eight);
        whole.signal(Signal::Set(u64::MAX - 1));
        whole.signal(Signal::Add(3));
        assert_eq!(whole.load(), 1);
    }
}
