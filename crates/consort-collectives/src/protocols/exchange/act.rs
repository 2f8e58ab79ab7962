//! The operations of rounds.

use consort_fabric::{Channel, Messages, Op, Rank, Span, Step};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Awaits the credit to send a chunk.
    AwaitCredit(Channel, Step),
    Send(Rank, Channel, Step, Span),
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

impl Act {
    #[inline(always)]
    pub(super) async fn run<F: Messages>(&self, f: &F) -> Op {
        match *self {
            Self::AwaitCredit(channel, step) => f.wait(channel, step).await,
            Self::Send(to, channel, step, source) => f.send(to, channel, step, source).await,
            Self::Copy { target, source } => f.copy(target, source).await,
            Self::Receive(channel, step, target) => f.receive(channel, step, target).await,
            Self::ReceiveCombine { channel, step, left, target } => {
                f.receive_combine(channel, step, left, target).await
            }
            Self::Combine { target, left, right } => f.combine(target, left, right).await,
            Self::Credit(to, channel, step) => f.signal(to, channel, step).await,
        }
    }
}
