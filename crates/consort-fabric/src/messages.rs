//! Messages: data together with its notification, sent into the receiver's inbox.
//!
//! Data and notification travel in one cache line: the payload, then the sequence word, stored last
//! with release. A longer message takes consecutive lines, each complete in itself. A channel holds
//! one message. A sender may overwrite it once it knows, through another message, that the receiver
//! has taken it. The *step* numbers a call's messages on one channel.

use std::future::Future;

use crate::{Channel, Local, Op, Rank, Span, Step};

/// Messages and signals between two PEs.
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
