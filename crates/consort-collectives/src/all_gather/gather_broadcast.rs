//! Gather and broadcast: all blocks go up a k-nomial tree to PE 0, and then down the same tree.
//!
//! A composition of the gather `knomial` and the broadcast `knomial` (Bala et al. 1995, section
//! 4.2, for radix 2; Nishtala, Zheng, Hargrove and Yelick 2011, section 3.5). It needs twice the
//! transfers of `bruck`, one after the other, but only `2 (P - 1)` messages in all.

use consort_fabric::{Candidate, Collective, Query};

use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    gather,
};

pub type GatherBroadcast = Composed<Parts>;

/// The two parts.
#[derive(Debug)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "gather_broadcast";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (1, 1 << 16) }];
    type First = gather::Knomial;
    type Second = broadcast::Knomial;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let tree =
            Candidate::new("knomial").with("radix", candidate.parameter("radix").unwrap_or(0));
        (tree.clone(), tree)
    }

    fn queries(query: &Query) -> (Query, Query) {
        let bytes = query.bytes.saturating_mul(query.pes.into());
        let gathered = Query { collective: Collective::Gather, ..*query };
        (gathered, Query { collective: Collective::Broadcast, bytes, ..*query })
    }
}
