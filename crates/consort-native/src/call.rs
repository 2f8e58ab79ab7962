//! The shared-memory [`Fabric`]: one call's view of the job.
//!
//! **Lending.** A lender shows a peer the address of its buffer and may not return before the peer
//! has given it back, or can no longer touch it:
//!
//! | | lender | borrower |
//! | --- | --- | --- |
//! | as a rule | waits until as many leases are given back as it made | copies, gives back |
//! | once the job has failed | waits until no peer is accessing | does not begin to copy |
//!
//! How the two agree on the latter is told in `lending.rs`.

#![expect(unsafe_code, reason = "resolves spans to memory and lends it to peers")]

#[cfg(test)]
mod tests;
mod waits;

use std::{
    future::{Future, ready},
    sync::atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    task::Poll,
};

use consort_fabric::{
    Atomic, Capabilities, Fabric, LINE_PAYLOAD_BYTES, Layout, Op, Place, Poisoned, Rank, Signal,
    Slot, Span, Step, Until, not_reached,
};

use crate::{
    group::{BRINGING_WORDS, CELL_WORDS, Geometry, Group, LINE_WORDS, MEETING_WORDS},
    job::{Failure, Job, PeState, SEQUENCE_BITS, SEQUENCE_MASK, call_in},
    lending::Accessing,
    line::{Line, LineWord, PAYLOAD_WORDS},
    memory::{Extent, Memory, Word},
    operands::{Buffer, Operands},
    segment::Segment,
};
use waits::{MeetCombine, Receive, ReceiveCombine, Wait, When, YieldNow};

/// A peer's memory on loan.
#[derive(Debug)]
pub struct Lease {
    at: *mut u8,
    bytes: usize,
    lender: Rank,
    kind: Loan,
    /// Of the buffer that it is a part of, where that may be written.
    extent: Extent,
    /// The call that it was lent in: the group, and the place in its window.
    group: u64,
    turn: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loan {
    /// A slice that nobody writes while it is lent.
    Source,
    /// A slice that its owner and the borrowers may write.
    Target,
    /// Symmetric memory, which lives as long as the job.
    Symmetric,
    /// The same, reached without asking: there is nothing to give back.
    Reached,
}

// SAFETY: the address is only used through `Call`, by the rules at the top of this file.
unsafe impl Send for Lease {}
// SAFETY: a lease is read-only data.
unsafe impl Sync for Lease {}

/// One call's view of the job.
pub struct Call<'c> {
    job: &'c Job,
    group: &'c Group,
    /// The rank in the group, as all ranks here.
    rank: Rank,
    /// The call's number modulo the window.
    turn: usize,
    /// The words of all inboxes.
    words: &'c [LineWord],
    word: u64,
    scratch: &'c Segment,
    operands: &'c Operands<'c>,
    target_lent: AtomicBool,
    lent: AtomicBool,
    /// Whether a flight drives it.
    flies: bool,
    /// The word of the inboxes that the pending wait waits for; `NO_WORD` if it waits for something
    /// else.
    watched: AtomicUsize,
    /// The sequence word that it saw there.
    seen: AtomicU64,
}

/// What makes a mark of a call's word: odd, so that each bit of the word counts.
const MARK_MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// No word of any inbox.
const NO_WORD: usize = usize::MAX;

// SAFETY: the buffers are borrowed for the call, and only the future that drives the call touches
// them through it; scratch belongs to the same PE's endpoint, which makes one call at a time.
unsafe impl Send for Call<'_> {}
// SAFETY: as above: all methods are called by the one future that drives the call.
unsafe impl Sync for Call<'_> {}

impl<'c> Call<'c> {
    #[inline(always)]
    pub(crate) fn new(
        job: &'c Job,
        group: &'c Group,
        rank: Rank,
        turn: usize,
        word: u64,
        scratch: &'c Segment,
        operands: &'c Operands<'c>,
    ) -> Self {
        Self {
            job,
            group,
            rank,
            turn,
            words: group.words(),
            word,
            scratch,
            operands,
            target_lent: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            flies: false,
            watched: AtomicUsize::new(NO_WORD),
            seen: AtomicU64::new(0),
        }
    }

    /// Says that a flight drives it.
    pub(crate) fn set_flying(&mut self) {
        self.flies = true;
    }

    /// The first word of a slot's line for this call, in the inbox of a PE.
    #[inline(always)]
    fn line_at(&self, pe: Rank, slot: Slot) -> usize {
        let Geometry { per_pe, stride, .. } = self.group.geometry;
        let line = self.turn * stride + slot.index() as usize;
        pe.index() * per_pe + line * LINE_WORDS
    }

    /// The words of `count` lines.
    #[inline(always)]
    fn lines(&self, pe: Rank, slot: Slot, count: usize) -> &[LineWord] {
        let first = self.line_at(pe, slot);
        &self.words[first..first + count * LINE_WORDS]
    }

    /// The sequence word of a signal, or of a message of 8 bytes, in the inbox of a PE. The payload
    /// stands in the word before.
    ///
    /// What stands beside lies with the call before: a barrier's signal at entry thus travels with
    /// its signal at the exit of that call, which is often sent just before it.
    #[inline(always)]
    fn cell_at(&self, pe: Rank, slot: Slot) -> usize {
        let Geometry { per_pe, first_cell, window, .. } = self.group.geometry;
        let slot_at =
            pe.index() * per_pe + first_cell + slot.index() as usize * window * CELL_WORDS;
        if slot.is_beside() {
            slot_at + (self.turn.wrapping_sub(1) & (window - 1)) * CELL_WORDS
        } else {
            slot_at + self.turn * CELL_WORDS + 1
        }
    }

    /// The first word of this PE's meeting with `peer`: that of the lower of them.
    #[inline(always)]
    fn meeting_at(&self, peer: Rank, slot: Slot) -> usize {
        let Geometry { per_pe, first_meeting, window, .. } = self.group.geometry;
        let meeting = slot.index() as usize * window + self.turn;
        self.rank.min(peer).index() * per_pe + first_meeting + meeting * MEETING_WORDS
    }

    /// The sequence words of this PE and of `peer`, in a meeting to which each brings the word that
    /// stands before.
    #[inline(always)]
    fn bringing_at(&self, peer: Rank, slot: Slot) -> (usize, usize) {
        let Geometry { per_pe, first_bringing, window, .. } = self.group.geometry;
        let meeting = slot.index() as usize * window + self.turn;
        let first =
            self.rank.min(peer).index() * per_pe + first_bringing + meeting * BRINGING_WORDS;
        let (low, high) = (first + 1, first + 1 + CELL_WORDS);
        if self.rank < peer { (low, high) } else { (high, low) }
    }

    /// What a wait's poll comes to when its word is `seen` and says nothing: the executor may watch
    /// word `watched` until it says something else.
    #[inline(always)]
    fn pending<T>(&self, watched: usize, seen: u64) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if (watched, seen) != (self.watched.load(Relaxed), self.seen.load(Relaxed)) {
            self.watched.store(watched, Relaxed);
            self.seen.store(seen, Relaxed);
            self.group.move_on(self.rank, self.flies);
        }
        Poll::Pending
    }

    /// The same for a wait that no word of an inbox says anything of; `is_new` when it is pending
    /// for the first time.
    #[inline(always)]
    fn pending_unwatched<T>(&self, is_new: bool) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if is_new {
            self.watched.store(NO_WORD, Relaxed);
            self.group.move_on(self.rank, self.flies);
        }
        Poll::Pending
    }

    /// What a member has whatever team it is in.
    #[inline(always)]
    fn state(&self, pe: Rank) -> &PeState {
        &self.job.states[self.group.in_world(pe).index()]
    }

    /// The beginning of a member's heap.
    #[inline(always)]
    fn heap(&self, pe: Rank) -> *mut u8 {
        self.job.heap(self.group.in_world(pe))
    }

    /// The beginning of a member's message buffer.
    #[inline(always)]
    fn buffer(&self, pe: Rank) -> *mut u8 {
        self.job.buffer(self.group.in_world(pe))
    }

    #[inline(always)]
    fn wake(&self, pe: Rank) {
        if self.job.parks() {
            self.job.wake(self.group.in_world(pe));
        }
    }

    #[inline(always)]
    fn word_of(&self, step: Step) -> u64 {
        self.word.wrapping_add(u64::from(step))
    }

    /// Where a span of this PE lies; its bounds are checked.
    #[inline(always)]
    fn resolve(&self, span: Span) -> Memory {
        let half = self.scratch.bytes() / 2;
        let scratch = |first: usize| (self.scratch.at(first, half), half, None);
        let words = Some(Extent::WORDS);
        let (at, bytes, shared) = match span.place {
            Place::Source => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.source;
                (at, bytes, words.filter(|_| symmetric))
            }
            Place::Target => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.target;
                let lent = || self.target_lent.load(Relaxed).then(|| Extent::lent(at, bytes));
                (at, bytes, if symmetric { words } else { lent() })
            }
            Place::Accumulator => scratch(0),
            Place::Incoming => scratch(half),
            Place::Heap => (self.heap(self.rank), self.job.heap_bytes(), words),
            Place::Buffer => (self.buffer(self.rank), self.capabilities().buffer_bytes, words),
        };
        let inside = span.at.checked_add(span.bytes).is_some_and(|end| end <= bytes);
        assert!(inside, "a span must lie in its buffer");
        Memory { at: at.wrapping_add(span.at), bytes: span.bytes, shared }
    }

    #[inline(always)]
    fn resolve_writable(&self, span: Span) -> Memory {
        assert!(span.place != Place::Source, "a source is never written");
        self.resolve(span)
    }

    /// `bytes` of a lease, checked.
    #[inline(always)]
    fn leased(lease: &Lease, at: usize, bytes: usize) -> Memory {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= lease.bytes);
        assert!(inside, "a copy must lie in what is lent");
        let shared = match lease.kind {
            Loan::Source => None,
            Loan::Target => Some(lease.extent),
            Loan::Symmetric | Loan::Reached => Some(Extent::WORDS),
        };
        Memory { at: lease.at.wrapping_add(at), bytes, shared }
    }

    /// Fails the job, since what `lease` says of a piece's length is not what this PE says.
    #[cold]
    fn disagree(&self, lease: &Lease, bytes: usize) -> Poisoned {
        let world = |rank| self.group.in_world(rank);
        let call = self.group.name_of_own(self.rank, self.word);
        self.job.poison(Failure::Pieces {
            call: call_in(&call, &self.group.team()),
            lender: (world(lease.lender), lease.bytes),
            borrower: (world(self.rank), bytes),
        });
        Poisoned
    }

    /// Runs `copy` on leased memory while its lender is bound to wait.
    #[inline(always)]
    fn accessing(&self, lease: &Lease, copy: impl FnOnce()) -> Op {
        if matches!(lease.kind, Loan::Symmetric | Loan::Reached) {
            copy();
            return Ok(());
        }
        let access = self.state(self.rank).accessing[usize::from(self.flies)]
            .enter(self.job.poison_flag())?;
        copy();
        drop(access);
        Ok(())
    }

    /// Waits until no peer can touch what this PE has lent, in a job that has failed.
    #[cold]
    fn drain(&self) {
        let peers = (0..self.size()).map(Rank).filter(|&peer| peer != self.rank);
        peers.flat_map(|peer| &self.state(peer).accessing).for_each(Accessing::drain);
    }

    #[inline(always)]
    fn send_now(&self, to: Rank, slot: Slot, step: Step, source: Span) {
        let memory = self.resolve(source);
        let word = self.word_of(step);
        if memory.bytes == 8 {
            let at = self.cell_at(to, slot);
            self.words[at - 1].store(memory.word().load(), Relaxed);
            self.words[at].store(word, Release); // pairs with the acquire in `Receive`
        } else {
            self.send_lines(to, slot, word, memory);
        }
        self.wake(to);
    }

    fn send_lines(&self, to: Rank, slot: Slot, word: u64, memory: Memory) {
        let count = memory.bytes.div_ceil(LINE_PAYLOAD_BYTES).max(1);
        for (index, line) in self.lines(to, slot, count).chunks_exact(LINE_WORDS).enumerate() {
            let part = memory.line(index);
            let words = part.pack();
            let used = part.bytes.div_ceil(8);
            for (place, &value) in line.iter().zip(&words[..used]) {
                place.store(value, Relaxed);
            }
            line[PAYLOAD_WORDS].store(word, Release); // pairs with the acquire in `Receive`
        }
    }

    #[inline(always)]
    fn receive_into(&self, slot: Slot, step: Step, target: Memory) -> Receive<'_> {
        let (at, count) = if target.bytes == 8 {
            (self.cell_at(self.rank, slot), 0)
        } else {
            let count = target.bytes.div_ceil(LINE_PAYLOAD_BYTES).max(1);
            (self.line_at(self.rank, slot) + PAYLOAD_WORDS, count)
        };
        Receive { call: self, at, word: self.word_of(step), target, done: 0, count }
    }

    /// `target = left (op) right` with the call's operator.
    #[inline(always)]
    pub(crate) fn combine_now(&self, target: Memory, left: Memory, right: Memory) {
        if let Some(kernel) = &self.operands.kernel {
            target.combine(kernel, left, right);
        }
    }

    /// The same on words.
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

    #[inline(always)]
    fn put_now(&self, lease: &Lease, at: usize, source: Span) -> Op {
        assert!(lease.kind != Loan::Source, "a lent source is never written");
        let source = self.resolve(source);
        let target = Self::leased(lease, at, source.bytes);
        self.accessing(lease, || target.copy_from(source))
    }

    /// Where `lender` shows `borrower` what it lends in this call. Nothing else writes there, so
    /// an address that is read there is one that was lent.
    #[inline(always)]
    fn loan_line(&self, borrower: Rank, lender: Rank, loan: u32) -> &Line {
        self.group.loan(borrower, lender, self.turn, loan)
    }

    /// How much this PE has lent in this call, and how much of that is given back.
    #[inline(always)]
    fn leases(&self) -> &Line {
        self.group.leases(self.rank, self.turn)
    }

    /// The 64-bit word at heap offset `word` of PE `at`.
    #[inline(always)]
    fn heap_word(&self, at: Rank, word: usize) -> &AtomicU64 {
        let inside = word.checked_add(8).is_some_and(|end| end <= self.job.heap_bytes());
        assert!(inside && word.is_multiple_of(8), "a word must be aligned and in the heap");
        let address = self.heap(at).wrapping_add(word);
        // SAFETY: in bounds, aligned, alive as long as the job, and only accessed atomically or by
        // `copy_shared`.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }

    #[inline(always)]
    fn signal_word(&self, at: Rank, word: usize, how: Signal) {
        let word = self.heap_word(at, word);
        match how {
            Signal::Set(value) => word.store(value, Release),
            Signal::Add(value) => {
                word.fetch_add(value, Release);
            }
        }
        self.wake(at);
    }

    fn when<'f, T>(
        &'f self,
        test: impl Fn() -> Option<T> + Unpin + 'f,
    ) -> When<'f, impl Fn() -> Option<T> + Unpin + 'f> {
        When { call: self, test, is_new: true }
    }
}

impl Drop for Call<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.lent.load(Relaxed) {
            self.end_loans();
        }
    }
}

impl Call<'_> {
    /// A call that has lent memory ends: if not all is back, it ends by failing.
    #[cold]
    fn end_loans(&self) {
        let leases = self.leases();
        if leases.counter(0).load(Acquire) != leases.counter(1).load(Relaxed) {
            if !self.job.is_poisoned() {
                let reason = "left a call while its buffers were lent".to_owned();
                self.job.poison(Failure::Pe { rank: self.group.in_world(self.rank), reason });
            }
            self.drain();
        }
    }
}

impl Fabric for Call<'_> {
    type Lease = Lease;

    #[inline(always)]
    fn capabilities(&self) -> Capabilities {
        self.group.capabilities()
    }

    #[inline(always)]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "ranks are 32 bits wide")]
    fn size(&self) -> u32 {
        self.group.size() as u32
    }

    #[inline(always)]
    fn send(&self, to: Rank, slot: Slot, step: Step, source: Span) -> impl Future<Output = Op> {
        self.send_now(to, slot, step, source);
        ready(Ok(()))
    }

    #[inline(always)]
    fn receive(&self, slot: Slot, step: Step, target: Span) -> impl Future<Output = Op> {
        self.receive_into(slot, step, self.resolve_writable(target))
    }

    #[inline(always)]
    fn receive_combine(
        &self,
        slot: Slot,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        let (left, target) = (self.resolve(left), self.resolve_writable(target));
        assert!(left.bytes == target.bytes, "what is combined is of one length");
        // A word is combined from a word; a longer message is received first.
        let into =
            if target.bytes == 8 { target } else { self.resolve(Span::incoming(target.bytes)) };
        let received = self.receive_into(slot, step, into);
        ReceiveCombine { received, left, target }
    }

    #[inline(always)]
    fn signal(&self, to: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        let word = &self.words[self.cell_at(to, slot)];
        word.store(self.word_of(step), Release); // pairs with the acquire in `Wait`
        self.wake(to);
        ready(Ok(()))
    }

    #[inline(always)]
    fn wait(&self, slot: Slot, step: Step) -> impl Future<Output = Op> {
        Wait { call: self, at: self.cell_at(self.rank, slot), word: self.word_of(step) }
    }

    #[inline(always)]
    fn meet(&self, peer: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        debug_assert!(!slot.is_beside(), "two meetings in a slot would share their words");
        let (first, word) = (self.meeting_at(peer, slot), self.word_of(step));
        let (mine, theirs) = if self.rank < peer { (0, 1) } else { (1, 0) };
        self.words[first + mine].store(word, Release); // pairs with the acquire in `Wait`
        self.wake(peer);
        Wait { call: self, at: first + theirs, word }
    }

    #[inline(always)]
    fn meet_combine(
        &self,
        peer: Rank,
        slot: Slot,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        debug_assert!(!slot.is_beside(), "two meetings in a slot would share their words");
        let (own, target) = (self.resolve(own).word().load(), self.resolve_writable(target).word());
        let ((mine, theirs), word) = (self.bringing_at(peer, slot), self.word_of(step));
        self.words[mine - 1].store(own, Relaxed);
        self.words[mine].store(word, Release); // pairs with the acquire in `MeetCombine`
        self.wake(peer);
        MeetCombine { call: self, at: theirs, word, own, is_left: self.rank < peer, target }
    }

    #[inline(always)]
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op> {
        self.resolve_writable(target).copy_from(self.resolve(source));
        ready(Ok(()))
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        self.combine_now(target, self.resolve(left), self.resolve(right));
        ready(Ok(()))
    }

    #[inline(always)]
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Slot::new(0)) + counter as usize];
        // Acquire and release: the last to count has seen what all before it did.
        ready(Ok(word.fetch_add(by, AcqRel)))
    }

    #[inline(always)]
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        assert!((counter as usize) < LINE_WORDS, "a call has {LINE_WORDS} counters");
        let word = &self.words[self.line_at(at, Slot::new(0)) + counter as usize];
        // A count says nothing of who has come. So each adds a mark of its calls so far as well:
        // where all are alike, they are as many times the own one as PEs have come. Acquire and
        // release: the last to come has seen what all before it did.
        let mark = self.word.wrapping_mul(MARK_MIX) >> SEQUENCE_BITS;
        let own = 1 | mark << SEQUENCE_BITS;
        let come = word.fetch_add(own, AcqRel).wrapping_add(own);
        let is_last = come & SEQUENCE_MASK == pes;
        if is_last {
            word.store(0, Relaxed); // seen by those who wait for what this one tells them now
        }
        // Where marks differ, comparing calls with the peers' ends the wait.
        let is_alike = !is_last || come == own.wrapping_mul(pes);
        self.when(move || is_alike.then_some(is_last))
    }

    fn lend(&self, to: Rank, loan: u32, span: Span) -> impl Future<Output = Op> {
        let memory = self.resolve(span);
        let kind = match span.place {
            Place::Source if !memory.is_shared() => Loan::Source,
            Place::Target if !self.operands.target.symmetric => {
                self.target_lent.store(true, Relaxed);
                Loan::Target
            }
            Place::Source | Place::Target | Place::Heap | Place::Buffer => Loan::Symmetric,
            Place::Accumulator | Place::Incoming => panic!("scratch memory is never lent"),
        };
        if kind != Loan::Symmetric {
            self.lent.store(true, Relaxed);
        }
        self.leases().counter(1).fetch_add(1, Relaxed);
        let line = self.loan_line(to, self.rank, loan);
        line.write(0, memory.at.expose_provenance() as u64);
        line.write(1, memory.bytes as u64);
        line.write(2, kind as u64);
        if kind == Loan::Target {
            Extent::lent(self.operands.target.at, self.operands.target.bytes).show(line, 3);
        }
        line.publish(self.word);
        self.wake(to);
        ready(Ok(()))
    }

    fn borrow(&self, from: Rank, loan: u32) -> impl Future<Output = Op<Lease>> {
        let line = self.loan_line(self.rank, from, loan);
        let (word, group, turn) = (self.word, self.group.number(), self.turn);
        // Both come from a `usize`.
        let size = |word: u64| usize::try_from(word).unwrap_or(0);
        self.when(move || {
            (line.word() == word).then(|| {
                line.publish(0); // taken: there is one lease for each loan
                Lease {
                    at: std::ptr::with_exposed_provenance_mut(size(line.read(0))),
                    bytes: size(line.read(1)),
                    lender: from,
                    kind: match line.read(2) {
                        0 => Loan::Source,
                        1 => Loan::Target,
                        _ => Loan::Symmetric,
                    },
                    extent: Extent::shown(line, 3),
                    group,
                    turn,
                }
            })
        })
    }

    fn piece(&self, place: Place, index: u32) -> Span {
        let layouts = self.operands.layouts.expect("a varied collective has layouts");
        Layout::span(layouts, place, index)
    }

    fn agree(&self, lease: &Lease, bytes: usize) -> impl Future<Output = Op> {
        ready(if lease.bytes == bytes { Ok(()) } else { Err(self.disagree(lease, bytes)) })
    }

    fn give_back(&self, lease: Lease) -> impl Future<Output = Op> {
        if lease.kind != Loan::Reached {
            assert!(lease.group == self.group.number(), "a lease is given back in its own team");
            let leases = self.group.leases(lease.lender, lease.turn);
            leases.counter(0).fetch_add(1, Release); // pairs with the acquire in `reclaim`
            self.wake(lease.lender);
        }
        ready(Ok(()))
    }

    fn reclaim(&self) -> impl Future<Output = Op> {
        let leases = self.leases();
        self.when(move || {
            (leases.counter(0).load(Acquire) == leases.counter(1).load(Relaxed)).then_some(())
        })
    }

    #[inline(always)]
    fn reach(&self, peer: Rank, span: Span) -> Lease {
        let heap = |pe: Rank| self.heap(pe);
        let buffer = |pe: Rank| self.buffer(pe);
        let (mine, theirs) = match span.place {
            Place::Source if self.operands.source.symmetric => (heap(self.rank), heap(peer)),
            Place::Target if self.operands.target.symmetric => (heap(self.rank), heap(peer)),
            Place::Heap => (heap(self.rank), heap(peer)),
            Place::Buffer => (buffer(self.rank), buffer(peer)),
            _ => not_reached(self.rank, peer, span),
        };
        let memory = self.resolve(span);
        Lease {
            at: theirs.wrapping_add(memory.at.addr() - mine.addr()),
            bytes: memory.bytes,
            lender: peer,
            kind: Loan::Reached,
            extent: Extent::WORDS,
            group: self.group.number(),
            turn: self.turn,
        }
    }

    #[inline(always)]
    fn get(&self, lease: &Lease, at: usize, target: Span) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        let source = Self::leased(lease, at, target.bytes);
        ready(self.accessing(lease, || target.copy_from(source)))
    }

    fn get_combine(
        &self,
        lease: &Lease,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        let right = Self::leased(lease, at, target.bytes);
        let left = self.resolve(left);
        ready(self.accessing(lease, || self.combine_now(target, left, right)))
    }

    #[inline(always)]
    fn put(&self, lease: &Lease, at: usize, source: Span) -> impl Future<Output = Op> {
        ready(self.put_now(lease, at, source))
    }

    #[inline(always)]
    fn put_signal(
        &self,
        lease: &Lease,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        let put = self.put_now(lease, at, source);
        if put.is_ok() {
            self.signal_word(lease.lender, word, how);
        }
        ready(put)
    }

    #[inline(always)]
    fn atomic(&self, at: Rank, word: usize, operation: Atomic) -> impl Future<Output = Op<u64>> {
        let cell = self.heap_word(at, word);
        let before = match operation {
            Atomic::Load => cell.load(SeqCst),
            Atomic::Swap(new) => cell.swap(new, SeqCst),
            Atomic::CompareSwap { current, new } => cell
                .compare_exchange(current, new, SeqCst, SeqCst)
                .unwrap_or_else(std::convert::identity),
            Atomic::FetchAdd(by) => cell.fetch_add(by, SeqCst),
            Atomic::FetchAnd(by) => cell.fetch_and(by, SeqCst),
            Atomic::FetchOr(by) => cell.fetch_or(by, SeqCst),
            Atomic::FetchXor(by) => cell.fetch_xor(by, SeqCst),
        };
        if operation != Atomic::Load {
            self.wake(at);
        }
        ready(Ok(before))
    }

    #[inline(always)]
    fn wait_until(&self, word: usize, until: Until) -> impl Future<Output = Op<u64>> {
        let cell = self.heap_word(self.rank, word);
        self.when(move || Some(cell.load(Acquire)).filter(|&value| until.holds(value)))
    }

    #[inline(always)]
    fn fence(&self) -> impl Future<Output = Op> {
        fence(Release); // pairs with the acquire of the receiver's wait; puts are done by then
        ready(Ok(()))
    }

    #[inline(always)]
    fn quiet(&self) -> impl Future<Output = Op> {
        fence(SeqCst);
        ready(Ok(()))
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        YieldNow { call: self, is_due: self.flies }
    }

    #[inline(always)]
    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op> {
        // Release: pairs with the acquire in `await_credits`.
        self.group.credits(to, self.rank).publish_at(0, quarter + 1);
        self.wake(to);
        ready(Ok(()))
    }

    #[inline(always)]
    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op> {
        let (group, me) = (self.group, self.rank);
        let others = (0..self.size()).map(Rank).filter(move |&peer| peer != me);
        self.when(move || {
            others.clone().all(|peer| group.credits(me, peer).word_at(0) > quarter).then_some(())
        })
    }
}
