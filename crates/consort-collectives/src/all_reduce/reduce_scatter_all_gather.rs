//! Reduce-scatter and all-gather: each PE combines its block, and then gets the others' combined
//! blocks.
//!
//! A composition of the reduce-scatter `direct` and the all-gather `direct` (Nishtala, Zheng,
//! Hargrove and Yelick 2011, section 3.5; Rabenseifner 2004 explains why it suits long data). Where
//! `shared` puts each block into every PE's target, here every PE gets it.
//!
//! Cost: a pass over the data to combine and one to gather; `2 P (P - 1)` exposed buffers.

use consort_fabric::{Candidate, Collective, Query};

use crate::{
    Parameter, all_gather,
    compose::{Composed, Composition},
    reduce_scatter,
};

pub type ReduceScatterAllGather = Composed<Parts>;

/// The two parts.
#[derive(Debug)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "reduce_scatter_all_gather";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "piece_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type First = reduce_scatter::Direct;
    type Second = all_gather::Direct;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let piece_bytes = candidate.parameter("piece_bytes").unwrap_or(0);
        let combined = Candidate::new("direct").with("piece_bytes", piece_bytes);
        (combined, Candidate::new("direct"))
    }

    fn queries(query: &Query) -> (Query, Query) {
        let bytes = query.bytes / u64::from(query.pes.max(1));
        let part = |collective| Query { collective, bytes, ..*query };
        (part(Collective::ReduceScatter), part(Collective::AllGather))
    }
}
