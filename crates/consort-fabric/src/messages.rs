//! Messages: data and its notification, into the receiver's inbox.
//!
//! Data and notification travel in one cache line: the payload, then the sequence word, stored last
//! with release. A longer message takes consecutive lines, each complete in itself. A channel holds
//! one message; a sender may overwrite it once it knows, through some other message, that the
//! receiver has taken it. The *step* numbers the messages of a call that use one channel.

use std::future::Future;

use crate::{Channel, Local, Op, Rank, Span, Step};

/// Messages and signals between two PEs.
///
/// What a PE did before `send` or `signal` happens before what the receiver does after the
/// `receive` or `wait` that takes it.
pub trait Messages: Local {
    /// Copies `source` into the inbox of `to`. The source may be changed afterwards.
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op>;

    /// Waits for message `step` in the own inbox and copies it to `target`.
    fn receive(&self, channel: Channel, step: Step, target: Span) -> impl Future<Output = Op>;

    /// Waits for message `step` in the own inbox and combines it with the call's operator:
    /// `target = left (op) message`. A message longer than the scratch memory is not combined so.
    fn receive_combine(
        &self,
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op>;

    /// Signals `to` that this PE has got as far as `step`, without data.
    fn signal(&self, to: Rank, channel: Channel, step: Step) -> impl Future<Output = Op>;

    /// Waits until the sender on `channel` has got as far as `step`.
    fn wait(&self, channel: Channel, step: Step) -> impl Future<Output = Op>;

    /// Signals `peer` that this PE has got as far as `step`, and waits until `peer` has, in the
    /// same channel. What a signal and a wait would do; but the words of both may share a cache
    /// line, which then moves once a call from one to the other and back. Not for a channel's
    /// second signal word, which has no such words of its own.
    fn pairwise_sync(&self, peer: Rank, channel: Channel, step: Step) -> impl Future<Output = Op> {
        async move {
            self.signal(peer, channel, step).await?;
            self.wait(channel, step).await
        }
    }

    /// Gives `own`, a word of 8 bytes, to `peer`, who gives one as well in the same channel:
    /// `target` becomes what the two come to, combined in the order of the ranks with the call's
    /// operator. What sending, receiving and combining would do; but the words of both may share a
    /// cache line, as in [`Messages::pairwise_sync`].
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
