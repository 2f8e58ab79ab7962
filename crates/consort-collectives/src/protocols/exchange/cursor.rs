//! The cursor of a call: its position among its rounds, and the next operations.
//!
//! A plan stores rounds, whose messages are spans of any length. A call goes through the rounds and
//! cuts each message into chunks when it reaches it. So a plan takes no more memory for longer
//! messages, and no more time to make or to refuse. The operations of one chunk are made at a time,
//! in memory that is reused for the next chunk. If no message is divided, the plan makes all
//! operations once.

use std::ops::Range;

use consort_fabric::{Messages, Op};

use super::{Buffers, Pass, Round, act::Act, cutter::Cutter, sequence::Sequence};
use crate::Setting;

/// The rounds of one PE in a call.
#[derive(Clone, Debug)]
pub struct Rounds {
    acts: Acts,
    steps: u32,
}

/// The stored form of rounds. Its size does not depend on the length of the messages.
#[derive(Clone, Debug)]
pub(super) enum Acts {
    /// If no message is divided: the operations, and the index at which those of each round end.
    Listed(Box<[Act]>, Box<[usize]>),
    /// Otherwise: the sequence that a call cuts into operations.
    Divided(Box<Sequence>),
}

impl Rounds {
    /// The rounds of one pass.
    #[must_use]
    pub fn new(setting: &Setting, buffers: &Buffers, rounds: Vec<Round>) -> Self {
        Self::of_passes(setting, buffers, vec![Pass { rounds, times: 1, bytes: 0, chunks: 0 }])
    }

    /// The rounds of these passes, one after the other.
    #[must_use]
    pub fn of_passes(setting: &Setting, buffers: &Buffers, passes: Vec<Pass>) -> Self {
        let sequence = Sequence::new(setting, buffers, passes);
        let acts = if sequence.is_undivided() {
            let (acts, ends) = listed(&sequence);
            Acts::Listed(acts.into(), ends.into())
        } else {
            Acts::Divided(Box::new(sequence))
        };
        Self { acts, steps: buffers.steps }
    }

    /// The number of steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        u64::from(self.steps)
    }

    /// The numbers of the rounds, in order.
    #[inline(always)]
    #[must_use]
    pub fn numbers(&self) -> Range<usize> {
        match &self.acts {
            Acts::Listed(_, ends) => 0..ends.len(),
            Acts::Divided(sequence) => 0..sequence.count(),
        }
    }

    /// The stored form.
    #[cfg(test)]
    pub(super) fn kept(&self) -> &Acts {
        &self.acts
    }

    /// All operations of a call.
    #[cfg(test)]
    pub(super) fn acts(&self) -> Vec<Act> {
        match &self.acts {
            Acts::Listed(acts, _) => acts.to_vec(),
            Acts::Divided(sequence) => listed(sequence).0,
        }
    }

    /// The cursor of a call, before the first round.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self) -> Cursor<'_> {
        Cursor(match &self.acts {
            Acts::Listed(acts, ends) => At::Listed { acts, ends, at: 0 },
            Acts::Divided(sequence) => At::Divided(Box::new(Cutter::new(sequence))),
        })
    }
}

/// All operations of a sequence, and the index at which those of each round end.
fn listed(sequence: &Sequence) -> (Vec<Act>, Vec<usize>) {
    let (mut acts, mut ends) = (Vec::new(), Vec::new());
    let mut cutter = Cutter::new(sequence);
    for _ in 0..sequence.count() {
        while let Some(&act) = cutter.next() {
            acts.push(act);
        }
        ends.push(acts.len());
    }
    (acts, ends)
}

/// The position of a call among its rounds.
#[derive(Debug)]
pub struct Cursor<'p>(At<'p>);

#[derive(Debug)]
enum At<'p> {
    Listed { acts: &'p [Act], ends: &'p [usize], at: usize },
    Divided(Box<Cutter<'p>>),
}

impl Cursor<'_> {
    /// Executes the next round, which must be number `round`.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn exchange<F: Messages>(&mut self, f: &F, round: usize) -> Op {
        while let Some(act) = self.next(round) {
            act.run(f).await?;
        }
        Ok(())
    }

    /// The next operation of the round; `None` at the round's end.
    #[inline(always)]
    fn next(&mut self, round: usize) -> Option<&Act> {
        match &mut self.0 {
            At::Listed { acts, ends, at } => {
                let act = acts[..ends[round]].get(*at)?;
                *at += 1;
                Some(act)
            }
            At::Divided(cutter) => cutter.next(),
        }
    }
}
