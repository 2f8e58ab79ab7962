//! Keeps the threads of a barrier on different processors, if there are enough of them.
//!
//! The threads have no ranks. So a thread that is about to sleep marks its processor. Two kinds of
//! threads leave a marked processor: another thread that is about to sleep there, and the last
//! thread of the phase, which first wakes the sleepers. [`Moves`] decides whether a move is worth
//! it. A phase in which no thread sleeps costs nothing.

use std::sync::{
    Mutex, TryLockError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use consort_machine::{
    affinity::{self, CpuId},
    wait::moves::Moves,
};

const BITS: usize = u64::BITS as usize;
/// The size of a mark of 1024 processors, which the system's masks have too.
const WORDS: usize = 1024 / BITS;

/// The marked processors of a barrier's threads.
#[derive(Debug)]
pub(super) struct Apart {
    /// One bit for each processor. Relaxed: an old value leads to a needless move or to none.
    marks: [AtomicU64; WORDS],
    moves: Mutex<Moves>,
}

/// A mark of the calling thread, until this is dropped.
#[derive(Debug)]
pub(super) struct Mark<'a> {
    word: &'a AtomicU64,
    bit: u64,
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.word.fetch_and(!self.bit, Relaxed);
    }
}

impl Apart {
    pub(super) const fn new() -> Self {
        Self { marks: [const { AtomicU64::new(0) }; WORDS], moves: Mutex::new(Moves::new()) }
    }

    /// Returns the word and the bit of a processor, if the marks have one.
    fn at(&self, cpu: CpuId) -> Option<(&AtomicU64, u64)> {
        let at = cpu.0 as usize;
        self.marks.get(at / BITS).map(|word| (word, 1 << (at % BITS)))
    }

    /// Returns whether a thread sleeps on the processor.
    fn is_marked(&self, cpu: CpuId) -> bool {
        self.at(cpu).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    /// Marks the processor; `None` if another thread has. Only the thread that set the mark clears it.
    fn mark(&self, cpu: CpuId) -> Option<Mark<'_>> {
        let (word, bit) = self.at(cpu)?;
        (word.fetch_or(bit, Relaxed) & bit == 0).then(|| Mark { word, bit })
    }

    /// Moves the calling thread to a processor without a mark, if that is worth it.
    fn leave(&self, phase: u64) -> Option<CpuId> {
        let mut moves = match self.moves.try_lock() {
            Ok(moves) => moves,
            Err(TryLockError::Poisoned(moves)) => moves.into_inner(),
            Err(TryLockError::WouldBlock) => return None, // another thread moves
        };
        moves.leave(phase, |cpu| !self.is_marked(cpu))
    }

    /// Marks the processor of the calling thread, which is about to sleep in this phase. If it is
    /// marked already, moves the thread to another one first.
    pub(super) fn enter(&self, phase: u64) -> Option<Mark<'_>> {
        self.enter_on(affinity::current()?, phase)
    }

    /// As [`Self::enter`], for a thread that runs `here`.
    fn enter_on(&self, here: CpuId, phase: u64) -> Option<Mark<'_>> {
        self.mark(here).or_else(|| self.mark(self.leave(phase)?))
    }

    /// Wakes the sleepers of this phase with `wake`. Moves the calling thread if one of them sleeps
    /// on its processor.
    pub(super) fn wake(&self, phase: u64, wake: impl FnOnce()) {
        self.wake_from(affinity::current(), phase, wake);
    }

    /// As [`Self::wake`], for a thread that runs `here`. Returns where it moves.
    fn wake_from(&self, here: Option<CpuId>, phase: u64, wake: impl FnOnce()) -> Option<CpuId> {
        let is_shared = here.is_some_and(|here| self.is_marked(here));
        wake();
        is_shared.then(|| self.leave(phase)).flatten()
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use super::*;

    #[test]
    fn sleeper_leaves_a_processor_on_which_another_one_sleeps() {
        let all = affinity::allowed();
        let &[first, second, ..] = &all[..] else { return };
        let apart = Apart::new();
        let one = apart.enter_on(first, 0).expect("nobody sleeps here");
        let other = apart.enter_on(first, 0).expect("another one is free");
        assert!(apart.is_marked(first) && apart.is_marked(second));
        assert_eq!(affinity::allowed(), all);
        drop(other);
        assert!(apart.is_marked(first) && !apart.is_marked(second));
        assert!(apart.enter_on(first, 0).is_none(), "it has just moved");
        drop(one);
        assert!(!apart.is_marked(first));
    }

    #[test]
    fn last_thread_leaves_a_processor_on_which_another_one_sleeps() {
        let &[first, second, ..] = &affinity::allowed()[..] else { return };
        for (here, moves) in [(first, Some(second)), (second, None)] {
            let apart = Apart::new();
            let _mark = apart.enter_on(first, 0).expect("nobody sleeps here");
            let mut wakes = 0;
            assert_eq!(apart.wake_from(Some(here), 1, || wakes += 1), moves);
            assert_eq!(wakes, 1);
        }
    }
}
