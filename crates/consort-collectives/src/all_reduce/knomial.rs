//! All-reduces up a tree to PE 0 and down again: `chain` and `knomial`.
//!
//! `knomial` is composed of the reduction and the broadcast of that name (Bala et al. 1995, section
//! 4.2, for radix 2; Nishtala, Zheng, Hargrove and Yelick 2011, section 3.5). `chain` is composed
//! of the reduction of that name and the broadcast `pipelined` of radix 1. It is for long messages
//! if buffers cannot be exposed.

use consort_fabric::{Candidate, Query};

use super::reduce_and_broadcast;
use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    reduce,
};

/// All-reduce over a k-nomial tree.
pub type Knomial = Composed<OverKnomial>;
/// All-reduce over a pipelined chain.
pub type Chain = Composed<OverChain>;

/// The two parts of [`Knomial`].
#[derive(Hash)]
pub struct OverKnomial;

impl Composition for OverKnomial {
    const NAME: &'static str = "knomial";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (1, 1 << 16) }];
    type First = reduce::Knomial;
    type Second = broadcast::Knomial;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let radix = candidate.parameter("radix").unwrap_or(0);
        let tree = Candidate::new("knomial").with("radix", radix);
        (tree.clone(), tree)
    }

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}

/// The two parts of [`Chain`].
#[derive(Hash)]
pub struct OverChain;

impl Composition for OverChain {
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
