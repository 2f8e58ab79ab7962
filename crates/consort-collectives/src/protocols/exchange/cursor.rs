//! The rounds of a call, and its cursor: its position among them and the next operation.
//!
//! A plan stores rounds, and their messages are spans of any length. A call goes through the
//! rounds, and cuts each message into chunks when it reaches the message. So the length of messages
//! affects neither the memory of a plan nor the time to create or refuse it. A call generates
//! operations one chunk at a time, in memory that it reuses for the next chunk. If no message is
//! divided, the plan generates all operations once.

use std::{iter, slice};

use consort_fabric::{Messages, Op};

use super::{Buffers, Round, RoundLoop, act::Act, cutter::Cutter, sequence::Sequence};
use crate::Setting;

/// The rounds of one PE in a call.
#[derive(Clone, Hash)]
pub struct Rounds {
    acts: Acts,
    steps: u32,
}

/// The stored form of rounds. Its size does not depend on the length of the messages.
#[derive(Clone, Hash)]
pub(super) enum Acts {
    /// If no message is divided: the operations.
    Listed(Box<[Act]>),
    /// Otherwise: the sequence that a call cuts into operations.
    Divided(Box<Sequence>),
}

impl Rounds {
    /// Creates the rounds of one pass.
    #[must_use]
    pub fn new(setting: &Setting, buffers: &Buffers, rounds: Vec<Round>) -> Self {
        Self::of_passes(setting, buffers, vec![RoundLoop { rounds, times: 1, bytes: 0, chunks: 0 }])
    }

    /// Creates the rounds of several passes, one after the other.
    #[must_use]
    pub fn of_passes(setting: &Setting, buffers: &Buffers, passes: Vec<RoundLoop>) -> Self {
        let sequence = Sequence::new(setting, buffers, passes);
        let acts = if sequence.is_undivided() {
            let mut cutter = Cutter::new(&sequence);
            Acts::Listed(iter::from_fn(|| cutter.next().copied()).collect())
        } else {
            Acts::Divided(Box::new(sequence))
        };
        Self { acts, steps: buffers.steps }
    }

    /// Returns the number of steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        u64::from(self.steps)
    }

    /// Executes the rounds, one after the other.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn run<F: Messages>(&self, f: &F) -> Op {
        let mut cursor = self.cursor();
        while let Some(act) = cursor.next() {
            match *act {
                Act::AwaitCredit(channel, step) => f.wait(channel, step).await?,
                Act::Send(to, channel, step, source) => f.send(to, channel, step, source).await?,
                Act::Exchange { peer, channel, step, own, target } => {
                    f.pairwise_exchange(peer, channel, step, Some(own), Some(target)).await?;
                }
                Act::Copy { target, source } => f.copy(target, source).await?,
                Act::Receive(channel, step, target) => f.receive(channel, step, target).await?,
                Act::ReceiveCombine { channel, step, left, target } => {
                    f.receive_combine(channel, step, left, target).await?;
                }
                Act::Combine { target, left, right } => f.combine(target, left, right).await?,
                Act::Credit(to, channel, step) => f.signal(to, channel, step).await?,
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn acts(&self) -> &Acts {
        &self.acts
    }

    #[inline(always)]
    pub(super) fn cursor(&self) -> Cursor<'_> {
        match &self.acts {
            Acts::Listed(acts) => Cursor::Listed(acts.iter()),
            Acts::Divided(sequence) => Cursor::Divided(Box::new(Cutter::new(sequence))),
        }
    }
}

/// The position of a call among its operations.
pub(super) enum Cursor<'p> {
    Listed(slice::Iter<'p, Act>),
    Divided(Box<Cutter<'p>>),
}

impl Cursor<'_> {
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<&Act> {
        match self {
            Self::Listed(acts) => acts.next(),
            Self::Divided(cutter) => cutter.next(),
        }
    }
}
