//! The interface for which collectives are written, in parts.
//!
//! A value that implements [`Fabric`] is one PE's view of one call. It knows the call's buffers,
//! its kernel and its sequence number. An algorithm moves data between *spans* ([`Span`]) of the
//! call's buffers and *channels* of the receiver's inbox. It never sees an address, and may not
//! assume that it can dereference a peer's memory. An algorithm's type bounds name the parts that
//! it uses:
//!
//! | part | contents |
//! | --- | --- |
//! | [`Local`] | the caller's rank; copying and combining its own data |
//! | [`Messages`] | messages and signals into a peer's inbox |
//! | [`Rma`] | gets and puts on memory that can be reached without a rendezvous |
//! | [`Rendezvous`] | the same on private buffers, which their owners expose |
//! | [`Counters`] | words to which several PEs add |
//! | [`VendorCollectives`] | collectives that the fabric provides |
//!
//! On shared memory, all operations except waits are ready at once. A wait may be pending, and
//! never spins internally: only the executor spins, yields and parks.
//!
//! Every operation fails with [`Poisoned`] once the job has failed, and only then.

use std::future::{Future, ready};

use crate::{Channel, Collective, Place, Rank, Span, Step};

/// The job has failed: a PE panicked or left, or calls did not match. The fabric keeps the reason
/// once for the whole job; this error only reports that an operation cannot complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

/// The result of a fabric operation.
pub type Op<T = ()> = Result<T, Poisoned>;

/// The calling PE, and operations on its own data.
pub trait Local {
    /// Returns the caller's rank in the team.
    fn rank(&self) -> Rank;

    /// Returns the team's size.
    fn size(&self) -> u32;

    /// Copies: `target = source`, both on this PE.
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op>;

    /// Combines: `target = left (op) right` with the call's operator, all on this PE.
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op>;

    /// Stores numbers that the algorithm has computed, as bytes, in the PE's scratch memory, so
    /// that they can be sent. `target` is as long as `bytes`.
    fn store(&self, target: Span, bytes: &[u8]) -> impl Future<Output = Op>;

    /// Loads bytes of the PE's scratch memory that another PE has stored and sent. `source` is as
    /// long as `bytes`.
    fn load(&self, source: Span, bytes: &mut [u8]) -> impl Future<Output = Op>;

    /// Returns block `index` of a vector variant as a span of `place`: of the source, which the
    /// caller contributes, or of the target, which it receives.
    fn vector_block(&self, place: Place, index: u32) -> Span;

    /// In a nonblocking call, lets the rest of the PE's program run once. An algorithm calls it
    /// before work that another PE may be about to do.
    fn yield_now(&self) -> impl Future<Output = Op> {
        ready(Ok(()))
    }
}

/// Messages and signals between two PEs: data together with its notification, sent into the
/// receiver's inbox.
///
/// Data and notification travel in one cache line: the payload, then the sequence word, stored last
/// with release. A longer message takes consecutive lines, each complete in itself. A channel holds
/// one message. A sender may overwrite it once it knows, through another message, that the receiver
/// has taken it. The *step* numbers a call's messages on one channel.
///
/// Everything that a PE did before `send` or `signal` happens before everything that the receiver
/// does after the `receive` or `wait` that takes it.
///
/// An operation panics if a rank is not in the team: that is a bug in the algorithm.
pub trait Messages: Local {
    /// Sends `source` into the inbox of `to`. The source may be changed once this is ready.
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op>;

    /// Waits for message `step` in the PE's own inbox and copies it to `target`.
    fn receive(&self, channel: Channel, step: Step, target: Span) -> impl Future<Output = Op>;

    /// Waits for message `step` in the PE's own inbox and combines it with the call's operator:
    /// `target = left (op) message`. The message may not be longer than the scratch memory.
    fn receive_combine(
        &self,
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op>;

    /// Signals `to` that this PE has reached `step`, without data.
    fn signal(&self, to: Rank, channel: Channel, step: Step) -> impl Future<Output = Op>;

    /// Waits until the sender on `channel` has reached `step`.
    fn wait(&self, channel: Channel, step: Step) -> impl Future<Output = Op>;

    /// Sends `own` to `peer`, or signals it if there is no `own`; then receives its data on the
    /// same channel into `target`, or awaits its signal if there is no `target` (pairwise
    /// exchange). Data is at most [`PAIRWISE_BYTES`](crate::PAIRWISE_BYTES), and as long as the
    /// other PE expects. Equivalent to these operations one after the other, but the data of both
    /// PEs may share a cache line, which then moves once per call from one PE to the other. Two PEs
    /// make all their pairwise operations in the same order, each after the previous one is
    /// complete.
    fn pairwise_exchange(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Option<Span>,
        target: Option<Span>,
    ) -> impl Future<Output = Op> {
        async move {
            match own {
                Some(own) => self.send(peer, channel, step, own).await?,
                None => self.signal(peer, channel, step).await?,
            }
            match target {
                Some(target) => self.receive(channel, step, target).await,
                None => self.wait(channel, step).await,
            }
        }
    }

    /// Exchanges `own`, a word of 8 bytes, with the word of `peer` on the same channel, as
    /// [`Messages::pairwise_exchange`] does, and combines the two words into `target` with the
    /// call's operator, in rank order.
    fn pairwise_combine(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        async move {
            self.send(peer, channel, step, own).await?;
            if self.rank() < peer {
                return self.receive_combine(channel, step, own, target).await;
            }
            self.receive(channel, step, target).await?;
            self.combine(target, target, own).await
        }
    }
}

/// Gets and puts on a peer's memory.
///
/// A `put` happens before everything that follows the receipt of a message that its caller sends
/// after a [`Rma::fence`]. Nothing else is ordered.
pub trait Rma: Local {
    /// A handle to a peer's memory: reached directly, or attached.
    type Remote: Send;

    /// Returns a handle to memory of a peer that can be reached without a rendezvous: a span of the
    /// symmetric heap, of the message buffer, or of the call's buffers if those are in symmetric
    /// memory.
    ///
    /// # Panics
    /// When the span is in none of these, by [`not_reached`]: the caller cannot know where the
    /// peer's memory is. A call in symmetric memory has both its buffers on every PE.
    fn reach(&self, peer: Rank, span: Span) -> Self::Remote;

    /// Gets: `target = remote[at ..]`.
    fn get(&self, remote: &Self::Remote, at: usize, target: Span) -> impl Future<Output = Op>;

    /// Gets and combines: `target = left (op) remote[at ..]` with the call's operator.
    fn get_combine(
        &self,
        remote: &Self::Remote,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op>;

    /// Gets from two peers and combines: `target = left[at ..] (op) right[at ..]` with the call's
    /// operator. Equivalent to two gets, of which the second combines; shared memory needs one
    /// pass.
    fn get_both_combine(
        &self,
        left: &Self::Remote,
        right: &Self::Remote,
        at: usize,
        target: Span,
    ) -> impl Future<Output = Op> {
        async move {
            self.get(left, at, target).await?;
            self.get_combine(right, at, target, target).await
        }
    }

    /// Puts: `remote[at ..] = source`.
    fn put(&self, remote: &Self::Remote, at: usize, source: Span) -> impl Future<Output = Op>;

    /// Puts `remote[at ..] = source`, then signals the 64-bit word at heap offset `word` of the
    /// same PE. A PE that sees the signal sees the data.
    fn put_signal(
        &self,
        remote: &Self::Remote,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op>;

    /// Puts `remote[at ..] = source`, then signals the owner of the memory, `to`, that this PE has
    /// reached `step`. A PE that sees the signal sees the data. Equivalent to a put, a fence and a
    /// signal; a network that bundles them sends one message.
    fn put_notify(
        &self,
        (to, remote): (Rank, &Self::Remote),
        at: usize,
        source: Span,
        channel: Channel,
        step: Step,
    ) -> impl Future<Output = Op>
    where
        Self: Messages,
    {
        async move {
            self.put(remote, at, source).await?;
            self.fence().await?;
            self.signal(to, channel, step).await
        }
    }

    /// Orders the caller's earlier puts before its later puts and messages, for every PE.
    fn fence(&self) -> impl Future<Output = Op>;

    /// Waits until the caller's puts are complete.
    fn quiet(&self) -> impl Future<Output = Op>;
}

/// The panic of [`Rma::reach`], the same in every fabric.
///
/// # Panics
/// Always, with the span that `rank` requested and why it cannot be reached.
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

/// An atomic operation on a word of symmetric memory, of 32 or 64 bits. Operands are bit patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Read the word.
    Load,
    /// Write the word; returns the old value.
    Swap(u64),
    /// Write `new` if the word is `current`; returns the old value.
    CompareSwap {
        /// The value to compare with.
        current: u64,
        /// The value to write.
        new: u64,
    },
    /// Add, wrapping around; returns the old value.
    FetchAdd(u64),
    /// Bitwise and; returns the old value.
    FetchAnd(u64),
    /// Bitwise or; returns the old value.
    FetchOr(u64),
    /// Bitwise exclusive or; returns the old value.
    FetchXor(u64),
}

/// How a signal changes a word of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Store this value.
    Set(u64),
    /// Add this value.
    Add(u64),
}

/// Access to peers' buffers that are not in symmetric memory: a PE exposes a private buffer, a peer
/// attaches it, copies, and detaches it.
///
/// Everything that a PE did before `expose` or `detach` happens before everything that the peer
/// does after the `attach` or `await_detached` that takes it.
pub trait Rendezvous: Rma {
    /// Exposes a buffer to `to`, which may read it, and may write it if it is the target. Exposures
    /// 0 and 1 of a call are distinct. The call does not end before the buffer is detached.
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op>;

    /// Like [`Self::expose`], but need not wake the peer. The peer must not attach before it has
    /// received a message, a signal or a barrier that follows this call.
    fn expose_without_wake(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.expose(to, exposure, span)
    }

    /// Waits for exposure `exposure` of `from` and attaches it, once.
    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<Self::Remote>>;

    /// Fails the job unless the exposed buffer is `bytes` long. Both PEs of a block of a vector
    /// variant state its length; this compares the two.
    fn check_length(&self, remote: &Self::Remote, bytes: usize) -> impl Future<Output = Op>;

    /// Fails the job unless `theirs`, the length of a block that PE `owner` has stated in a
    /// message, is `own`, the length that this PE expects.
    fn check_stated_length(
        &self,
        owner: Rank,
        theirs: usize,
        own: usize,
    ) -> impl Future<Output = Op>;

    /// Detaches a peer's memory. Does nothing for memory that needed no rendezvous.
    fn detach(&self, remote: Self::Remote) -> impl Future<Output = Op>;

    /// Like [`Self::detach`], but need not wake the owner. The owner must not call
    /// [`Self::await_detached`] before it has received a message, a signal or a barrier that
    /// follows this call.
    fn detach_without_wake(&self, remote: Self::Remote) -> impl Future<Output = Op> {
        self.detach(remote)
    }

    /// Waits until all exposures of this PE in this call are detached.
    fn await_detached(&self) -> impl Future<Output = Op>;
}

/// Counters: words on each PE that are 0 when a call begins.
pub trait Counters: Local {
    /// Adds `by` to counter `counter` of PE `at`, and returns the old value. An algorithm that uses
    /// a counter resets it to 0 before the call ends.
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>>;

    /// Arrives at counter `counter` of PE `at`, as one of `pes` PEs. Returns whether the caller is
    /// the last to arrive; the last one also resets the counter to 0.
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        async move {
            let is_last = self.count(at, counter, 1).await? + 1 == pes;
            if is_last {
                self.count(at, counter, pes.wrapping_neg()).await?;
            }
            Ok(is_last)
        }
    }
}

/// Returns the window of a team: the largest number of calls that may be pending at once. Inboxes
/// have room for this many, so the window of a large team is shorter.
#[must_use]
pub const fn window(pes: usize) -> usize {
    if pes <= 64 { 64 } else { 16 }
}

/// The PEs for which a credit counts: each of them has left a quarter of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credit {
    /// The PE that gives the credit.
    Own,
    /// That PE, and the PEs whose credits for the quarter it had awaited.
    Group,
}

/// Flow control, which keeps the PEs of a team within a window of calls. Algorithms do not use it.
pub trait Credits: Local {
    /// Gives `to` a credit for quarter number `quarter` of the window of calls.
    fn credit(&self, to: Rank, credit: Credit, quarter: u64) -> impl Future<Output = Op>;

    /// Waits until each of these peers has given such a credit for quarter number `quarter`.
    fn await_credits(
        &self,
        from: impl Iterator<Item = Rank> + Clone + Unpin,
        credit: Credit,
        quarter: u64,
    ) -> impl Future<Output = Op>;
}

/// A call of a collective that the fabric provides, in hardware or from a library such as an MPI.
/// The first of the participating PEs has rank 0.
#[derive(Clone, Copy, Debug, Hash)]
pub struct VendorCall {
    /// The operation: one of [`VendorCall::COLLECTIVES`].
    pub collective: Collective,
    /// Whether the first PEs of the nodes take part instead of those of the team.
    pub leaders: bool,
    /// The root, among the participating PEs.
    pub root: Rank,
    /// The contribution: one block, or one for each participating PE.
    pub source: Span,
    /// The result, in the same form.
    pub target: Span,
    /// Bytes of a block.
    pub bytes: usize,
    /// The type of the elements, if they are combined.
    pub datatype: &'static str,
    /// The operator that combines them.
    pub operator: &'static str,
}

impl VendorCall {
    /// The collectives that libraries provide.
    pub const COLLECTIVES: [Collective; 8] = [
        Collective::Barrier,
        Collective::Broadcast,
        Collective::Scatter,
        Collective::Gather,
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Reduce,
        Collective::AllReduce,
    ];

    /// The element types that libraries combine, by their names in Rust.
    pub const DATATYPES: [&'static str; 10] =
        ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

    /// The operators that libraries have. Libraries choose the smaller or larger of two floats
    /// differently if one is a NaN or both are zero. In some, sums of short integers saturate at
    /// the largest integer on overflow (Open MPI 4.1 with AVX).
    pub const OPERATORS: [&'static str; 7] =
        ["Sum", "Product", "BitAnd", "BitOr", "BitXor", "Min", "Max"];

    /// Returns whether libraries combine elements of this type and operator as this crate does.
    #[must_use]
    pub fn combines(datatype: &str, operator: &str) -> bool {
        let is_float = matches!(datatype, "f32" | "f64");
        let is_short = matches!(datatype, "u8" | "i8" | "u16" | "i16");
        let is_known = Self::DATATYPES.contains(&datatype) && Self::OPERATORS.contains(&operator);
        let is_arithmetic = matches!(operator, "Sum" | "Product");
        is_known && (!is_float || is_arithmetic) && !(is_short && is_arithmetic)
    }
}

/// Collectives that the fabric provides, if [`Capabilities::vendor`](crate::Capabilities::vendor)
/// says so.
pub trait VendorCollectives: Local {
    /// Makes a call. All participating PEs make it, in the same order as their other such calls.
    ///
    /// # Panics
    /// When the fabric provides no collectives.
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        async move { panic!("the fabric does not provide {}", call.collective) }
    }
}

/// All parts of the fabric. Any type that implements the parts implements this trait.
pub trait Fabric: Messages + Rendezvous + Counters + VendorCollectives {}

impl<F: Messages + Rendezvous + Counters + VendorCollectives> Fabric for F {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_combines_only_exact_operators() {
        assert!(VendorCall::combines("f64", "Sum"));
        assert!(VendorCall::combines("i32", "Max"));
        assert!(!VendorCall::combines("f64", "Max"), "NaN and -0 differ");
        assert!(VendorCall::combines("u8", "Max"));
        assert!(!VendorCall::combines("u8", "Sum"), "some saturate");
        assert!(!VendorCall::combines("[f64; 2]", "Sum"));
        assert!(!VendorCall::combines("u64", "a closure"));
    }
}
