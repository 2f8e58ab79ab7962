//! Ring all-reduce: each block goes around the ring once to be combined, and once to be
//! distributed.
//!
//! Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations": a reduce-scatter and an all-gather around a ring. For commutative operators.
//!
//! Protocol (`protocols/exchange`), with the data divided into `P` blocks of whole elements, the
//! last of which may be shorter or empty:
//! 1. in rounds 0 to `P - 2` send block `r - i` to PE `r + 1`, receive block `r - i - 1` from PE `r
//!    - 1`, and combine it with this PE's block; then PE `r` has the combined block `r + 1`;
//! 2. in another `P - 1` rounds forward combined blocks in the same way, from `r + 1` down, and
//!    keep the received blocks.
//!
//! A PE sends or combines a block before it overwrites the block with the result, so the algorithm
//! works in place.
//!
//! Cost: `2 (P - 1)` consecutive transfers, and `2 (P - 1) / P` of the data through a PE, which is
//! the minimum. Every PE communicates only with its neighbours.

use consort_fabric::{CallSpec, Candidate, MachineModel, OperatorClass, Query, Span};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Ring;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, element_bytes, .. }, .. } = *setting;
    let element = element_bytes.max(1);
    let each = bytes.div_ceil(element).div_ceil(pes as usize) * element;
    let buffers = Buffers::new(setting, 2 * (pes - 1), each, 1, 1)?;
    let own = setting.contribution();
    // Returns the block of the PE `before` ranks before this one, in the contribution. Blocks have
    // the same lengths on all PEs.
    let block = |before: u32| {
        let index = rank.plus((2 * pes - before) as usize, pes as usize).index();
        let at = (index * each).min(bytes);
        Span { place: own, at, bytes: each.min(bytes - at) }
    };
    let (right, left) = (rank.plus(1, pes as usize), rank.plus((pes - 1) as usize, pes as usize));
    let result = |span: Span| Span::target(span.at, span.bytes);
    let round = |i: u32| {
        let (given, taken) = (block(i), block(i + 1));
        let combines = i + 1 < pes;
        let mut round = Round::at(i * buffers.chunks(each), 0);
        // Blocks may be empty if there are few elements.
        if given.bytes > 0 {
            round = round.send(right, [if i == 0 { given } else { result(given) }]);
        }
        if taken.bytes > 0 {
            let keep = if combines { OnReceive::After(vec![taken]) } else { OnReceive::Stores };
            round = round.receive(left, [result(taken)], keep);
        }
        round
    };
    let rounds: Vec<Round> = (0..2 * (pes - 1)).map(round).collect();
    Some(Rounds::new(setting, &buffers, rounds))
}

impl InRounds for Ring {
    const NAME: &'static str = "ring";
    const IN_PLACE: bool = true;

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if setting.call.class != OperatorClass::Commutative {
            return Err(Self::incapable("it needs a commutative operator"));
        }
        if setting.call.pes < 2
            || setting.call.bytes / setting.call.element_bytes.max(1) < setting.call.pes as usize
        {
            return Err(Self::incapable("it needs at least two PEs, and an element per PE"));
        }
        rounds(setting).ok_or(Self::incapable("the inbox or the scratch memory is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let turns = model.pes_a_core(query.pes);
        let combined = bytes * (pes - 1.0) / pes / model.copy_gbps * turns;
        combined + exchange::cost_ns(query, model, [(2.0 * (pes - 1.0), bytes / pes)])
    }
}
