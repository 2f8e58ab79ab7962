//! k-nomial all-reduce: up a k-nomial tree to PE 0, and down the same tree.
//!
//! A composition of the reduction `knomial` and the broadcast `knomial` (Bala et al. 1995, section
//! 4.2, for radix 2).

use consort_fabric::{Candidate, Query};

use super::reduce_and_broadcast;
use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    reduce,
};

/// See the head of this file.
pub type Knomial = Composed<Parts>;

/// What it is composed of.
#[derive(Debug)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "knomial";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (1, 1 << 16) }];
    type First = reduce::Knomial;
    type Second = broadcast::Knomial;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let tree =
            Candidate::new("knomial").with("radix", candidate.parameter("radix").unwrap_or(0));
        (tree.clone(), tree)
    }

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}
