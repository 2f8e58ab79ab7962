//! All-gather by recursive doubling: the distance of the partners and the number of blocks of a PE
//! double in each round.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.1.
//!
//! Protocol, in rounds 0 to `log2 P - 1` (`protocols/exchange`), for `P` a power of two: PEs `r`
//! and `r xor 2^i` exchange the `2^i` blocks that each has. These are the blocks of the ranks that
//! differ from its rank only in the lower `i` bits.
//!
//! Cost: `log2 P` transfers, `P - 1` blocks.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Rank, Span};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct RecursiveDoubling;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let count = pes.ilog2();
    let buffers = Buffers::new(setting, count, bytes * (pes / 2) as usize, 1, count)?;
    let own = setting.source_block(0);
    let blocks = |first: u32, count: u32| {
        let Span { at, .. } = setting.target_block(first);
        vec![Span::target(at, count as usize * bytes)]
    };
    let mut first = 0;
    let mut all = Vec::new();
    for index in 0..count {
        let size = 1 << index;
        let (mine, theirs) = (rank.0 / size * size, (rank.0 ^ size) / size * size);
        let partner = Rank(rank.0 ^ size);
        let sent = if index == 0 { vec![own] } else { blocks(mine, size) };
        let round = Round::at(first, index).send(partner, sent);
        all.push(round.receive(partner, blocks(theirs, size), OnReceive::Stores));
        first += buffers.chunks(size as usize * bytes);
    }
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Rounds::new(setting, &buffers, all))
}

impl InRounds for RecursiveDoubling {
    const NAME: &'static str = "recursive_doubling";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if !setting.call.pes.is_power_of_two() {
            return Err(Self::incapable(format!(
                "{} PEs are not a power of two",
                setting.call.pes
            )));
        }
        rounds(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let rounds =
            (0..query.pes.max(1).ilog2()).map(|index| (1.0, bytes * f64::from(1 << index)));
        exchange::own_copy_ns(query, model) + exchange::cost_ns(query, model, rounds)
    }
}
