//! The counters of a call: words on each PE that are 0 when the call begins.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::{AcqRel, Relaxed},
};

use consort_fabric::{Channel, Counters, Op, Rank};

use super::view::CallView;
use crate::inbox::geometry::{LINE_WORDS, SEQUENCE_BITS, SEQUENCE_MASK};

/// The multiplier of a call's mark. It is odd, so that each bit of the word matters.
const MARK_MIX: u64 = 0xd6e8_feb8_6659_fd93;

impl Counters for CallView<'_> {
    #[inline(always)]
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Channel::new(0)) + counter as usize];
        // Acquire and release: the last PE to count observes everything that the others did before
        // they counted.
        ready(Ok(word.fetch_add(by, AcqRel)))
    }

    #[inline(always)]
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Channel::new(0)) + counter as usize];
        // The count alone does not show whether the PEs are in the same call. Therefore each PE
        // adds a mark of its call above the count. If all calls match, the sum is the PE's own
        // addend times the number of PEs. Acquire and release: the last PE to arrive observes
        // everything that the others did before they arrived.
        let mark = self.word.wrapping_mul(MARK_MIX) >> SEQUENCE_BITS;
        let own = 1 | mark << SEQUENCE_BITS;
        let come = word.fetch_add(own, AcqRel).wrapping_add(own);
        let is_last = come & SEQUENCE_MASK == pes;
        if is_last {
            word.store(0, Relaxed); // ordered by the signal that the other PEs wait for
        }
        // If marks differ, the wait stays pending until the comparison of calls across PEs fails
        // the job.
        let is_alike = !is_last || come == own.wrapping_mul(pes);
        self.when(move || is_alike.then_some(is_last))
    }
}
