//! The interface that collectives are written on.
//!
//! A value that implements [`Fabric`] is one call's view of the team: it knows the call's buffers,
//! its kernel and its sequence number. The algorithm moves data by naming *areas* ([`Span`]) of
//! the call and *slots* of the receiver's inbox; it never sees an address, and may not assume that
//! a peer's memory can be dereferenced.
//!
//! Operations other than waits are ready at once on shared memory; a wait may be pending, and
//! never spins inside itself: the executor alone spins, yields and parks.
//!
//! **Messages.** Data and its notification travel in one cache line: seven words of payload, then
//! the sequence word, stored last with release. A longer message takes consecutive lines, each
//! complete in itself. A slot holds one message; a sender may overwrite it once it knows, through
//! some other message, that the receiver has taken it. The *step* numbers the messages of a call
//! that use one slot.

use std::future::{Future, ready};

use crate::{Poisoned, Rank};

/// Bytes of data in one line of a message; the rest of the line is its sequence word.
pub const LINE_PAYLOAD_BYTES: usize = 56;

/// What an operation of a fabric returns.
pub type Op<T = ()> = Result<T, Poisoned>;

/// A place in a PE's inbox for the current call: for a message, of one line or of several from here
/// on, or for signals.
///
/// Equal slots of successive calls lie together, several a line, as far as messages are small: what
/// a PE sends in a row then travels together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    const BESIDE: u32 = 1 << 31;

    /// Slot number `index`.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        assert!(index < Self::BESIDE, "a slot's number has 31 bits");
        Self(index)
    }

    /// The place for another signal beside the first, in a slot that is only used for signals.
    #[must_use]
    pub const fn beside(self) -> Self {
        Self(self.0 | Self::BESIDE)
    }

    /// The slot's number.
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 & !Self::BESIDE
    }

    /// Whether this is the place beside.
    #[inline(always)]
    #[must_use]
    pub const fn is_beside(self) -> bool {
        self.0 & Self::BESIDE != 0
    }
}

/// The number of a message within its call, among those that use one slot.
pub type Step = u32;

/// A buffer that a call can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// What the caller contributes; never written.
    Source,
    /// Where the caller's result goes.
    Target,
    /// Private memory of [`Capabilities::scratch_bytes`], for partial results.
    Accumulator,
    /// Private memory of the same size, for a message that is combined next.
    Incoming,
    /// The symmetric heap: the same offsets on every PE.
    Heap,
    /// The PE's message buffer of [`Capabilities::buffer_bytes`], which every peer reaches without
    /// asking. An algorithm that fills it does not end before its peers have taken what they need.
    Buffer,
}

/// A piece of one of the call's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub place: Place,
    /// Offset from the buffer's beginning, in bytes.
    pub at: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl Span {
    /// Part of what the caller contributes.
    #[inline]
    #[must_use]
    pub const fn source(at: usize, bytes: usize) -> Self {
        Self { place: Place::Source, at, bytes }
    }

    /// Part of the caller's result.
    #[inline]
    #[must_use]
    pub const fn target(at: usize, bytes: usize) -> Self {
        Self { place: Place::Target, at, bytes }
    }

    /// The first `bytes` of the memory for partial results.
    #[inline]
    #[must_use]
    pub const fn accumulator(bytes: usize) -> Self {
        Self { place: Place::Accumulator, at: 0, bytes }
    }

    /// The first `bytes` of the memory for an incoming message.
    #[inline]
    #[must_use]
    pub const fn incoming(bytes: usize) -> Self {
        Self { place: Place::Incoming, at: 0, bytes }
    }

    /// Part of the message buffer.
    #[inline]
    #[must_use]
    pub const fn buffer(at: usize, bytes: usize) -> Self {
        Self { place: Place::Buffer, at, bytes }
    }

    /// Part of the symmetric heap.
    #[inline]
    #[must_use]
    pub const fn heap(at: usize, bytes: usize) -> Self {
        Self { place: Place::Heap, at, bytes }
    }
}

/// An atomic operation on a 64-bit word of the symmetric heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Read it.
    Load,
    /// Write it; returns what was there.
    Swap(u64),
    /// Write `new` if it is `current`; returns what was there.
    CompareSwap {
        /// What the word must be.
        current: u64,
        /// What it becomes then.
        new: u64,
    },
    /// Add, wrapping around; returns what was there.
    FetchAdd(u64),
    /// Bitwise and; returns what was there.
    FetchAnd(u64),
    /// Bitwise or; returns what was there.
    FetchOr(u64),
    /// Bitwise exclusive or; returns what was there.
    FetchXor(u64),
}

/// How a signal changes a word of the symmetric heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The word becomes this.
    Set(u64),
    /// This is added to it.
    Add(u64),
}

/// What a wait on a word of the caller's own symmetric heap waits for, compared as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Equal to this.
    Equals(u64),
    /// Anything but this.
    Differs(u64),
    /// This or more.
    AtLeast(u64),
    /// This or less.
    AtMost(u64),
}

impl Until {
    /// Whether `value` ends the wait.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Equals(wanted) => value == wanted,
            Self::Differs(unwanted) => value != unwanted,
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// What a fabric can do for a call; an algorithm that needs more does not serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Lines of a PE's inbox for one call.
    pub inbox_lines: u32,
    /// Bytes of the accumulator, and of the memory for incoming messages.
    pub scratch_bytes: usize,
    /// Bytes of a PE's message buffer.
    pub buffer_bytes: usize,
    /// Whether buffers can be lent to peers, who then get and put without the lender's help.
    pub lending: bool,
    /// Whether a message is sent before its receiver takes it. Else two PEs that both send to each
    /// other first wait forever.
    pub buffered: bool,
}

/// What every fabric says where [`Fabric::reach`] cannot give what `rank` asked for.
///
/// # Panics
/// Always: it says what was asked for, and why it cannot be reached.
#[cold]
pub fn not_reached(rank: Rank, peer: Rank, span: Span) -> ! {
    let Span { place, at, bytes } = span;
    let why = match place {
        Place::Source | Place::Target => "this call's buffer is not in symmetric memory",
        Place::Accumulator | Place::Incoming => "scratch memory is private",
        Place::Heap | Place::Buffer => "this fabric has no such memory",
    };
    let end = at.saturating_add(bytes);
    panic!("PE {rank} cannot reach bytes {at}..{end} of the {place:?} of PE {peer}: {why}")
}

/// One call's view of its team.
///
/// # Ordering
/// Everything the caller did before `send`, `signal`, `lend` or `give_back` happens before what the
/// receiver does after the `receive`, `wait`, `borrow` or `reclaim` that takes it. A `put` happens
/// before what follows a message that its caller sends after a [`Fabric::fence`]. Nothing else is
/// ordered.
///
/// # Errors
/// Every operation fails with [`Poisoned`] once the job has failed, and only then.
pub trait Fabric {
    /// A peer's memory, lent to the caller until it is given back.
    type Lease: Send;

    /// What this fabric can do.
    fn capabilities(&self) -> Capabilities;
    /// The caller's rank in the team.
    fn rank(&self) -> Rank;
    /// The team's size.
    fn size(&self) -> u32;

    /// Copies `source` into the inbox of `to`, as a message of as many lines as it takes (one, for
    /// an empty message). The source may be changed afterwards.
    fn send(&self, to: Rank, slot: Slot, step: Step, source: Span) -> impl Future<Output = Op>;

    /// Waits for message `step` in the own inbox and copies it to `target`.
    fn receive(&self, slot: Slot, step: Step, target: Span) -> impl Future<Output = Op>;

    /// Waits for message `step` in the own inbox and combines it with the call's operator:
    /// `target = left (op) message`. A message longer than the scratch memory is not combined so.
    fn receive_combine(
        &self,
        slot: Slot,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op>;

    /// Tells `to` that this PE has got as far as `step`; one line without data.
    fn signal(&self, to: Rank, slot: Slot, step: Step) -> impl Future<Output = Op>;

    /// Waits until the sender on `slot` has got as far as `step`.
    fn wait(&self, slot: Slot, step: Step) -> impl Future<Output = Op>;

    /// Tells `peer` that this PE has got as far as `step`, and waits until `peer` has, in the same
    /// slot. What a signal and a wait would do; but the words of both may share a line, which then
    /// moves once a call from one to the other and back. Not for the place beside in a slot, which
    /// has no such words of its own.
    fn meet(&self, peer: Rank, slot: Slot, step: Step) -> impl Future<Output = Op>;

    /// Gives `own`, a word of 8 bytes, to `peer`, who gives one as well in the same slot: `target`
    /// becomes what the two come to, combined in the order of the ranks with the call's operator.
    /// What sending, receiving and combining would do; but the words of both may share a line, as
    /// in [`Fabric::meet`].
    fn meet_combine(
        &self,
        peer: Rank,
        slot: Slot,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        async move {
            self.send(peer, slot, step, own).await?;
            if self.rank() < peer {
                return self.receive_combine(slot, step, own, target).await;
            }
            self.receive(slot, step, target).await?;
            self.combine(target, target, own).await
        }
    }

    /// `target = source`, both on this PE.
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op>;

    /// `target = left (op) right` with the call's operator, all on this PE.
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op>;

    /// Adds `by` to counter `counter` of `at` and returns what it was. The counters of a call begin
    /// at 0, and whoever uses one brings it back to 0 before the call ends.
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>>;

    /// Counts the caller among `pes` that come to counter `counter` of `at`. Says whether it is the
    /// last, by whom the counter is 0 again.
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        async move {
            let is_last = self.count(at, counter, 1).await? + 1 == pes;
            if is_last {
                self.count(at, counter, pes.wrapping_neg()).await?;
            }
            Ok(is_last)
        }
    }

    /// Lends a buffer to `to`, who may read it, and write it where it is the target. Loans 0 and 1
    /// of a call are distinct. The call does not end before it is given back.
    fn lend(&self, to: Rank, loan: u32, span: Span) -> impl Future<Output = Op>;

    /// Waits for loan `loan` of `from` and takes it, once.
    fn borrow(&self, from: Rank, loan: u32) -> impl Future<Output = Op<Self::Lease>>;

    /// Piece `index` of what the caller contributes to a varied collective, or of what it receives:
    /// a span of the source or the target.
    fn piece(&self, place: Place, index: u32) -> Span;

    /// Fails the job unless what is lent is `bytes` long: two PEs say of one piece how long it is.
    fn agree(&self, lease: &Self::Lease, bytes: usize) -> impl Future<Output = Op>;

    /// Gives a peer's memory back.
    fn give_back(&self, lease: Self::Lease) -> impl Future<Output = Op>;

    /// Waits until all that this PE has lent in this call is given back.
    fn reclaim(&self) -> impl Future<Output = Op>;

    /// A peer's memory that is reached without asking: a span of the symmetric heap, of the message
    /// buffer, or of the call's buffers where those lie in symmetric memory. Giving it back does
    /// nothing.
    ///
    /// # Panics
    /// When the span lies in none of these, as [`not_reached`] says: the caller cannot tell where
    /// the peer's is. A call in symmetric memory names both its buffers on every PE.
    fn reach(&self, peer: Rank, span: Span) -> Self::Lease;

    /// `target = lease[at ..]`.
    fn get(&self, lease: &Self::Lease, at: usize, target: Span) -> impl Future<Output = Op>;

    /// `target = left (op) lease[at ..]` with the call's operator.
    fn get_combine(
        &self,
        lease: &Self::Lease,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op>;

    /// `lease[at ..] = source`.
    fn put(&self, lease: &Self::Lease, at: usize, source: Span) -> impl Future<Output = Op>;

    /// `lease[at ..] = source`, then a signal to the 64-bit word at heap offset `word` of the
    /// same PE: whoever sees the signal sees the data.
    fn put_signal(
        &self,
        lease: &Self::Lease,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op>;

    /// An atomic operation on the 64-bit word at heap offset `word` of `at`; sequentially
    /// consistent. Returns what was there.
    fn atomic(&self, at: Rank, word: usize, operation: Atomic) -> impl Future<Output = Op<u64>>;

    /// Waits on the 64-bit word at heap offset `word` of the caller's own memory.
    fn wait_until(&self, word: usize, until: Until) -> impl Future<Output = Op<u64>>;

    /// Orders the caller's puts before its later puts and messages, for every PE.
    fn fence(&self) -> impl Future<Output = Op>;

    /// Waits until the caller's puts are complete.
    fn quiet(&self) -> impl Future<Output = Op>;

    /// Lets the program go on that this call is driven beside, if it is a nonblocking one: for an
    /// algorithm that would else do what other PEs may come to do.
    fn yield_now(&self) -> impl Future<Output = Op> {
        ready(Ok(()))
    }

    /// Tells `to` that the caller has left another quarter of the team's window of calls.
    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op>;

    /// Waits until all peers have given their credit for `quarter`.
    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op>;
}
