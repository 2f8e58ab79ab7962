//! Reduce-scatter and all-gather: each PE combines its block, and then gets the combined blocks of
//! the others.
//!
//! A composition of two parts, each by any algorithm of its collective (Nishtala, Zheng, Hargrove
//! and Yelick 2011, section 3.5; Rabenseifner 2004 explains why it suits long data), for example
//! `reduce_scatter_all_gather(direct(block_bytes=16384),direct)`. `shared` puts each block into
//! every PE's target; `direct` gets it instead.
//!
//! Cost with both `direct`: one pass over the data to combine and one to gather; `2 P (P - 1)`
//! exposed buffers.

use consort_fabric::{Collective, Query};

use crate::{
    all_gather,
    compose::open::{Open, OpenComposition},
    reduce_scatter,
};

pub type ReduceScatterAllGather = Open<Parts>;

/// The two parts.
#[derive(Hash)]
pub struct Parts;

impl OpenComposition for Parts {
    const NAME: &'static str = "reduce_scatter_all_gather";
    type First = reduce_scatter::Any;
    type Second = all_gather::Any;

    fn queries(query: &Query) -> (Query, Query) {
        let bytes = query.bytes / u64::from(query.pes.max(1));
        let part = |collective| Query { collective, bytes, ..*query };
        (part(Collective::ReduceScatter), part(Collective::AllGather))
    }
}
