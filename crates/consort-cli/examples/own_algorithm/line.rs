//! An all-reduce along a line: each PE combines its block with the message from the right, and the
//! result goes back.
//!
//! This is the code of `docs/adding-an-algorithm.md`: a program's own algorithm, which is not in
//! the library's registry.
//!
//! Source: the chain of Nishtala and Yelick 2009, section 4.1, up and then down.
//!
//! Protocol:
//! 1. receive the combination of all blocks to the right, and combine this PE's block with it;
//! 2. send the combination to the left; on PE 0 it is the result;
//! 3. receive the result from the left and send it to the right.
//!
//! Cost: `2 (P - 1)` messages, one after the other.

use consort_collectives::{Algorithm, Parameter, PlanError, Setting};
use consort_fabric::{CallSpec, Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Span};

/// An all-reduce along a line of PEs: partial results go left, and the result goes right.
pub(crate) struct Line;

/// The schedule of a PE.
#[derive(Hash)]
pub(crate) struct Neighbours {
    left: Option<Rank>,
    right: Option<Rank>,
    /// The channel for messages from the right; `result` is the one from the left.
    sum: Channel,
    result: Channel,
    bytes: usize,
}

impl Algorithm for Line {
    const NAME: &'static str = "line";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Neighbours;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Neighbours, PlanError> {
        Self::check(candidate)?;
        let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let channels = u32::try_from(Channel::count_for(bytes)).unwrap_or(u32::MAX);
        let fits = channels <= setting.lines() / 2 && bytes <= setting.capabilities.scratch_bytes;
        if !fits {
            return Err(Self::incapable("a block does not fit the inbox"));
        }
        Ok(Neighbours {
            left: rank.0.checked_sub(1).map(Rank),
            right: Some(rank.0 + 1).filter(|&right| right < pes).map(Rank),
            sum: setting.channel(0),
            result: setting.channel(channels),
            bytes,
        })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let messages = 2.0 * (f64::from(query.pes) - 1.0);
        model.hops_ns(messages, query.pes) + messages * model.lines_ns(query.bytes as f64)
    }

    async fn run<F: Messages>(f: &F, schedule: &Neighbours) -> Op {
        let Neighbours { left, right, sum, result, bytes } = *schedule;
        let (own, target) = (Span::source(0, bytes), Span::target(0, bytes));
        match right {
            Some(_) => f.receive_combine(sum, 0, own, target).await?,
            None => f.copy(target, own).await?,
        }
        if let Some(left) = left {
            f.send(left, sum, 0, target).await?;
            f.receive(result, 0, target).await?;
        }
        if let Some(right) = right {
            f.send(right, result, 0, target).await?;
        }
        Ok(())
    }
}
