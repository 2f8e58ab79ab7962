//! The futures of a call's waits. They never spin: a pending future reports the word to watch.

#![expect(
    unsafe_code,
    reason = "receives messages into memory that the call keeps valid, and combines local words"
)]

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering::{Acquire, Relaxed},
    task::{Context, Poll},
};

use consort_fabric::{Op, Poisoned};

use super::view::{CallView, NO_WORD};
use crate::{
    inbox::{geometry::LINE_WORDS, line::PAYLOAD_WORDS},
    memory::{region::Memory, word::Word},
};
use consort_machine::wait::executor::Watch;

/// A wait for a step is over if the word is less than this many steps ahead of it.
const STEPS_AHEAD: u64 = 1 << 32;

impl Watch for CallView<'_> {
    #[inline(always)]
    fn spin(&self, left: &mut u32) {
        if let Some(word) = self.group.word_at(self.watched.load(Relaxed)) {
            let seen = self.seen.load(Relaxed);
            while *left > 0 && word.load(Relaxed) == seen {
                *left -= 1;
                std::hint::spin_loop();
            }
        } else {
            std::hint::spin_loop();
        }
    }
}

impl CallView<'_> {
    /// Returns the index of the word that the pending wait watches, if it watches one. If the word
    /// has changed, the wait is over.
    #[cold]
    pub(crate) fn awaited_word(&self) -> Option<usize> {
        let at = self.watched.load(Relaxed);
        let word = self.group.word_at(at)?;
        (word.load(Relaxed) == self.seen.load(Relaxed)).then_some(at)
    }

    /// Returns the poll result of a wait that is not over after it saw the value `seen` in word
    /// `watched`. The executor may spin until this word has another value.
    #[inline(always)]
    fn pending<T>(&self, watched: usize, seen: u64) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if (watched, seen) != (self.watched.load(Relaxed), self.seen.load(Relaxed)) {
            self.watched.store(watched, Relaxed);
            self.seen.store(seen, Relaxed);
            self.group.move_on(self.is_nonblocking);
        }
        Poll::Pending
    }

    /// Like [`Self::pending`], for a wait that watches no inbox word. `is_new` means that it is
    /// pending for the first time.
    #[inline(always)]
    pub(super) fn pending_unwatched<T>(&self, is_new: bool) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if is_new {
            self.watched.store(NO_WORD, Relaxed);
            self.group.move_on(self.is_nonblocking);
        }
        Poll::Pending
    }

    /// Copies the data before the sequence word `at` to `target`.
    #[inline(always)]
    fn read_before(&self, at: usize, target: Memory) {
        if target.bytes == 8 {
            return target.word().store(self.words[at - 1].load(Relaxed));
        }
        self.read_words_before(at, target);
    }

    #[inline(never)]
    fn read_words_before(&self, at: usize, target: Memory) {
        let words = self.words_before(at, target.bytes);
        if target.bytes.is_multiple_of(8) {
            for (index, word) in words.iter().enumerate() {
                target.word_at(index).store(word.load(Relaxed));
            }
        } else {
            target.unpack(words);
        }
    }

    /// Counts a receive that begins. Its memory is resolved now.
    #[inline(always)]
    pub(super) fn begin_receive(&self) {
        self.receiving.store(self.receiving.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a receive that has ended. A later poll finds no word to wait for and panics.
    #[inline(always)]
    fn end_receive(&self, at: &mut usize) {
        *at = NO_WORD;
        self.receiving.store(self.receiving.load(Relaxed) - 1, Relaxed);
    }

    /// Counts the end of a receive of data from a far PE.
    pub(super) fn end_far_receive(&self) {
        self.receiving.store(self.receiving.load(Relaxed) - 1, Relaxed);
    }

    /// Computes `target = left (op) right` on 8-byte words.
    #[inline(always)]
    fn combine_word(&self, target: Word, left: u64, mut right: u64) {
        if let Some(kernel) = &self.operands.kernel {
            let mut sum = left;
            let at = (&raw mut sum).cast::<u8>();
            // SAFETY: two distinct local words.
            unsafe { kernel.combine(at, at, (&raw mut right).cast(), 8) };
            target.store(sum);
        }
    }

    pub(super) fn when<T, F: Fn() -> Option<T> + Unpin>(&self, test: F) -> When<'_, F> {
        When { call: self, test, is_new: true }
    }

    /// Like [`Self::when`], for a test of one word: the executor watches it.
    #[inline(always)]
    pub(super) fn when_word<'f, T>(
        &'f self,
        at: usize,
        test: impl Fn(u64) -> Option<T> + 'f,
    ) -> WhenWord<'f, impl Fn(u64) -> Option<T> + 'f> {
        WhenWord { call: self, at, test }
    }
}

/// A future that is ready when `test` returns `Some` for the word at index `at` of the group's
/// memory.
pub(super) struct WhenWord<'f, F> {
    call: &'f CallView<'f>,
    at: usize,
    test: F,
}

impl<T, F: Fn(u64) -> Option<T>> Future for WhenWord<'_, F> {
    type Output = Op<T>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op<T>> {
        let Self { call, at, test } = &*self;
        // Acquire: pairs with the release of the peer that changes the word.
        let seen = call.group.word_at(*at).expect("a word of the group").load(Acquire);
        test(seen).map_or_else(|| call.pending(*at, seen), |value| Poll::Ready(Ok(value)))
    }
}

/// A future that is ready when `test` returns `Some`, and fails when the job has failed.
pub(super) struct When<'f, F> {
    pub(super) call: &'f CallView<'f>,
    pub(super) test: F,
    /// Whether the future has not been pending yet.
    pub(super) is_new: bool,
}

impl<T, F: Fn() -> Option<T> + Unpin> Future for When<'_, F> {
    type Output = Op<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op<T>> {
        match (self.test)() {
            Some(value) => Poll::Ready(Ok(value)),
            None => {
                let is_new = std::mem::take(&mut self.is_new);
                self.call.pending_unwatched(is_new)
            }
        }
    }
}

/// A future that is pending on its first poll if `is_due`, then ready.
pub(super) struct YieldNow<'f> {
    pub(super) call: &'f CallView<'f>,
    pub(super) is_due: bool,
}

impl Future for YieldNow<'_> {
    type Output = Op;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        if std::mem::take(&mut self.is_due) {
            self.call.pending_unwatched(true)
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

/// A future that is ready when the word at index `at` has reached `word`.
pub(super) struct Wait<'f> {
    pub(super) call: &'f CallView<'f>,
    pub(super) at: usize,
    pub(super) word: u64,
}

impl Future for Wait<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        let Self { call, at, word } = *self;
        let seen = call.words[at].load(Acquire); // pairs with the release in `signal`
        if seen.wrapping_sub(word) < STEPS_AHEAD {
            return Poll::Ready(Ok(()));
        }
        call.pending(at, seen)
    }
}

/// Receives a message from a short slot, or line by line.
pub(super) struct Receive<'f> {
    pub(super) call: &'f CallView<'f>,
    /// The index of the next sequence word, or `NO_WORD` at the end.
    pub(super) at: usize,
    pub(super) word: u64,
    pub(super) target: Memory,
    /// The number of lines received so far, and the total. Both are 0 for a message in a short
    /// slot.
    pub(super) done: usize,
    pub(super) count: usize,
}

// SAFETY: the target belongs only to the call that the future borrows: a target is not exposed
// while a receive is counted.
unsafe impl Send for Receive<'_> {}

impl Future for Receive<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        let this = &mut *self;
        loop {
            let seen = this.call.words[this.at].load(Acquire); // pairs with the release in `send`
            if seen != this.word {
                return this.call.pending(this.at, seen);
            }
            if this.count == 0 {
                this.target.word().store(this.call.words[this.at - 1].load(Relaxed));
                this.call.end_receive(&mut this.at);
                return Poll::Ready(Ok(()));
            }
            let line = &this.call.words[this.at - PAYLOAD_WORDS..this.at];
            this.target.line(this.done).unpack(line);
            this.done += 1;
            this.at += LINE_WORDS;
            if this.done == this.count {
                this.call.end_receive(&mut this.at);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Receives a message and combines it with `left`.
pub(super) struct ReceiveCombine<'f> {
    pub(super) received: Receive<'f>,
    pub(super) left: Memory,
    pub(super) target: Memory,
}

// SAFETY: as for `Receive`.
unsafe impl Send for ReceiveCombine<'_> {}

impl Future for ReceiveCombine<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Op> {
        let Self { received, left, target } = &mut *self;
        let Receive { call, at, word, count, .. } = *received;
        if count > 0 {
            let message = received.target;
            return Pin::new(received).poll(context).map(|done| {
                call.combine_now(*target, *left, message);
                done
            });
        }
        let seen = call.words[at].load(Acquire); // pairs with the release in `send`
        if seen != word {
            return call.pending(at, seen);
        }
        let message = call.words[at - 1].load(Relaxed);
        // SAFETY: `count` is 0, so the message is in a short slot and the target has 8 bytes. The
        // left operand has the same length, as `receive_combine` has asserted.
        let [target, left] = unsafe { Word::of_eight_bytes([*target, *left]) };
        call.combine_word(target, left.load(), message);
        call.end_receive(&mut received.at);
        Poll::Ready(Ok(()))
    }
}

/// A future that is ready when the peer's data has arrived, or its signal if it sends no data.
pub(super) struct PairwiseExchange<'f> {
    pub(super) call: &'f CallView<'f>,
    /// The index of the peer's sequence word, or `NO_WORD` at the end.
    pub(super) at: usize,
    pub(super) word: u64,
    pub(super) target: Option<Memory>,
}

// SAFETY: as for `Receive`.
unsafe impl Send for PairwiseExchange<'_> {}

impl Future for PairwiseExchange<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        let Self { call, at, word, target } = *self;
        let seen = call.words[at].load(Acquire); // pairs with the release in `pairwise_exchange`
        if seen != word {
            return call.pending(at, seen);
        }
        if let Some(target) = target {
            call.read_before(at, target);
            call.end_receive(&mut self.at);
        }
        Poll::Ready(Ok(()))
    }
}

/// A future that is ready when the peer's value has arrived and is combined with this PE's value.
pub(super) struct PairwiseCombine<'f> {
    pub(super) call: &'f CallView<'f>,
    /// The index of the peer's sequence word, or `NO_WORD` at the end.
    pub(super) at: usize,
    pub(super) word: u64,
    pub(super) own: u64,
    /// Whether this PE's value is the left operand.
    pub(super) is_left: bool,
    pub(super) target: Word,
}

// SAFETY: as for `Receive`.
unsafe impl Send for PairwiseCombine<'_> {}

impl Future for PairwiseCombine<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        let Self { call, at, word, own, is_left, target } = *self;
        let seen = call.words[at].load(Acquire); // pairs with the release in `pairwise_combine`
        if seen != word {
            return call.pending(at, seen);
        }
        let theirs = call.words[at - 1].load(Relaxed);
        let (left, right) = if is_left { (own, theirs) } else { (theirs, own) };
        call.combine_word(target, left, right);
        call.end_receive(&mut self.at);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::Location,
        pin::pin,
        sync::{Arc, atomic::AtomicBool},
        task::Waker,
    };

    use consort_fabric::{Local, Place, Rank, Rendezvous, Span};

    use super::*;
    use crate::{
        call::operands::Operands,
        endpoint::identity::Endpoint,
        launch::{config::Config, job::Job},
    };

    fn ends() -> [Endpoint; 2] {
        let job: Arc<Job> = Job::new(Config::of_two()).expect("some memory");
        [0, 1].map(|pe| Endpoint::new(Arc::clone(&job), Rank(pe)).expect("memory"))
    }

    /// Runs `test` on a call of PE 0, nonblocking or blocking, and on the group's count of moves.
    fn in_a_call(is_nonblocking: bool, test: impl FnOnce(&CallView<'_>, &dyn Fn() -> u64)) {
        let [end, _] = ends();
        // SAFETY: this is the only call, and the futures that drive it are polled one at a time.
        let mut call = unsafe { end.view(&Operands::NONE) };
        if is_nonblocking {
            call.set_nonblocking();
        }
        test(&call, &|| end.group().memory.moves());
    }

    #[test]
    fn an_operation_yields_once_and_a_blocking_call_never() {
        let mut context = Context::from_waker(Waker::noop());
        for is_nonblocking in [false, true] {
            in_a_call(is_nonblocking, |call, moves| {
                for round in 1..4 {
                    let mut yields = pin!(call.yield_now());
                    let polls = [(); 2].map(|()| yields.as_mut().poll(&mut context).is_pending());
                    assert_eq!(polls, [is_nonblocking, false]);
                    assert_eq!(
                        moves(),
                        if is_nonblocking { round } else { 0 },
                        "a wait that yields has driven the operations"
                    );
                }
            });
        }
    }

    /// Deadlock detection counts moves. A pending wait counts as one move however often it is
    /// polled, even if it watches no word or follows another such wait.
    #[test]
    fn each_wait_that_is_pending_is_one_move() {
        let mut context = Context::from_waker(Waker::noop());
        in_a_call(false, |call, moves| {
            for round in 1..4 {
                let is_over = AtomicBool::new(false);
                let mut wait = pin!(call.when(|| is_over.load(Relaxed).then_some(())));
                for _ in 0..3 {
                    assert!(wait.as_mut().poll(&mut context).is_pending());
                    assert_eq!(moves(), round);
                }
                is_over.store(true, Relaxed);
                assert_eq!(wait.as_mut().poll(&mut context), Poll::Ready(Ok(())));
                assert_eq!(moves(), round);
            }
            assert!(pin!(call.when(|| Some(1))).poll(&mut context).is_ready());
            assert_eq!(moves(), 3, "what is ready at once was not waited for");
        });
    }

    /// An attached exposure leaves its word unchanged, so each wait sees the same value.
    #[test]
    fn each_wait_for_a_buffer_of_the_same_peer_is_one_move() {
        let mut context = Context::from_waker(Waker::noop());
        let ends = ends();
        let [call, peer] = ends.each_ref().map(|end| {
            // SAFETY: this is the PE's only call, and its futures are polled one at a time.
            unsafe { end.begin(1, 1, &Operands::NONE, Location::caller()) }
        });
        let span = Span { place: Place::Source, at: 0, bytes: 0 };
        for round in 1..4 {
            let mut attach = pin!(call.attach(Rank(1), 0));
            for _ in 0..2 {
                assert!(attach.as_mut().poll(&mut context).is_pending());
                assert_eq!(ends[0].group().memory.moves(), round);
            }
            assert!(call.awaited_word().is_some());
            assert_eq!(pin!(peer.expose(Rank(0), 0, span)).poll(&mut context), Poll::Ready(Ok(())));
            let Poll::Ready(Ok(remote)) = attach.poll(&mut context) else {
                panic!("the buffer is exposed");
            };
            assert_eq!(call.awaited_word(), None, "it computes");
            assert_eq!(pin!(call.detach(remote)).poll(&mut context), Poll::Ready(Ok(())));
            assert_eq!(pin!(peer.await_detached()).poll(&mut context), Poll::Ready(Ok(())));
        }
    }

    /// Returns the result of a future that is ready when it is first polled.
    fn now<T>(future: impl Future<Output = Op<T>>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(value)) => value,
            _ => panic!("it has to wait"),
        }
    }

    /// Returns whether `does` wakes a thread that is about to sleep as PE `pe`.
    fn wakes(job: &Job, pe: u32, does: impl FnOnce()) -> bool {
        let slot = job.parking_slot(Rank(pe));
        let _sleeper = slot.announce();
        let before = slot.parker.prepare();
        does();
        slot.parker.prepare() != before
    }

    #[test]
    fn exposure_or_detachment_without_wake_wakes_no_pe() {
        let ends = ends();
        let [call, peer] = ends.each_ref().map(|end| {
            // SAFETY: this is the PE's only call, and its futures are polled one at a time.
            unsafe { end.begin(1, 1, &Operands::NONE, Location::caller()) }
        });
        let job = call.job;
        let span = Span { place: Place::Source, at: 0, bytes: 0 };
        assert!(!wakes(job, 0, || now(peer.expose_without_wake(Rank(0), 0, span))));
        assert!(wakes(job, 0, || now(peer.expose(Rank(0), 1, span))));
        let [first, second] = [0, 1].map(|exposure| now(call.attach(Rank(1), exposure)));
        assert!(!wakes(job, 1, || now(call.detach_without_wake(first))));
        assert!(wakes(job, 1, || now(call.detach(second))));
        now(peer.await_detached());
    }
}
