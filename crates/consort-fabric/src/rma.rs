//! Remote memory access: copies to and from a peer's memory without its help.

use std::future::Future;

use crate::{Channel, Local, Messages, Op, Place, Rank, Signal, Span, Step};

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
