//! The operations of rounds.

use consort_fabric::{Channel, Rank, Span, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    /// Awaits the credit to send a chunk.
    AwaitCredit(Channel, Step),
    Send(Rank, Channel, Step, Span),
    /// A pairwise exchange: sends `own` to `peer` and receives into `target`.
    Exchange {
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Span,
        target: Span,
    },
    Copy {
        target: Span,
        source: Span,
    },
    Receive(Channel, Step, Span),
    /// `target = left (op) message`.
    ReceiveCombine {
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    },
    Combine {
        target: Span,
        left: Span,
        right: Span,
    },
    /// Gives a PE the credit to send a chunk.
    Credit(Rank, Channel, Step),
}
