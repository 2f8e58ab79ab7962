//! Chain all-reduce: a pipelined chain to PE 0, and one back.
//!
//! A composition of the reduction `chain` and the broadcast `pipelined` of radix 1. For long
//! messages where nothing can be lent.

use consort_fabric::{Candidate, Query};

use super::reduce_and_broadcast;
use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    reduce,
};

/// See the head of this file.
pub type Chain = Composed<Parts>;

/// What it is composed of.
#[derive(Debug)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "chain";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "chunk_bytes", values: &[1024, 4096], range: (1, 1 << 30) }];
    type First = reduce::Chain;
    type Second = broadcast::Pipelined;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let chunk = candidate.parameter("chunk_bytes").unwrap_or(0);
        (
            Candidate::new("chain").with("chunk_bytes", chunk),
            Candidate::new("pipelined").with("chunk_bytes", chunk).with("radix", 1),
        )
    }

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}
