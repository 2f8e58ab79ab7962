//! Gather and broadcast: all blocks go to PE 0, which sends them to all PEs.
//!
//! A composition of two parts, each by any algorithm of its collective (Bala et al. 1995, section
//! 4.2; Nishtala, Zheng, Hargrove and Yelick 2011, section 3.5), for example
//! `gather_broadcast(knomial(radix=2),knomial(radix=2))`. It needs twice the transfers of `bruck`,
//! one after the other, but only `2 (P - 1)` messages in total.

use consort_fabric::{Collective, Query};

use crate::{
    broadcast,
    compose::open::{Open, OpenComposition},
    gather,
};

pub type GatherBroadcast = Open<Parts>;

/// The two parts.
#[derive(Hash)]
pub struct Parts;

impl OpenComposition for Parts {
    const NAME: &'static str = "gather_broadcast";
    type First = gather::Any;
    type Second = broadcast::Any;

    fn queries(query: &Query) -> (Query, Query) {
        let bytes = query.bytes.saturating_mul(query.pes.into());
        let gathered = Query { collective: Collective::Gather, ..*query };
        (gathered, Query { collective: Collective::Broadcast, bytes, ..*query })
    }
}
