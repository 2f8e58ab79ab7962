//! Words on each PE that begin every call at 0.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::{AcqRel, Relaxed},
};

use consort_fabric::{Channel, Counters, Op, Rank};

use super::view::Call;
use crate::inbox::geometry::{LINE_WORDS, SEQUENCE_BITS, SEQUENCE_MASK};

/// What makes a mark of a call's word: odd, so that each bit of the word counts.
const MARK_MIX: u64 = 0xd6e8_feb8_6659_fd93;

impl Counters for Call<'_> {
    #[inline(always)]
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Channel::new(0)) + counter as usize];
        // Acquire and release: the last to count has seen what all before it did.
        ready(Ok(word.fetch_add(by, AcqRel)))
    }

    #[inline(always)]
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Channel::new(0)) + counter as usize];
        // A count says nothing of who has come. So each adds a mark of its calls so far as well:
        // where all are alike, they are as many times the own one as PEs have come. Acquire and
        // release: the last to come has seen what all before it did.
        let mark = self.word.wrapping_mul(MARK_MIX) >> SEQUENCE_BITS;
        let own = 1 | mark << SEQUENCE_BITS;
        let come = word.fetch_add(own, AcqRel).wrapping_add(own);
        let is_last = come & SEQUENCE_MASK == pes;
        if is_last {
            word.store(0, Relaxed); // seen by the PEs that wait for this one's signal
        }
        // Where marks differ, comparing calls with the peers' ends the wait.
        let is_alike = !is_last || come == own.wrapping_mul(pes);
        self.when(move || is_alike.then_some(is_last))
    }
}
