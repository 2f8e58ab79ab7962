//! All-reduce by OC-BCAST's scheme: gets from message buffers, up one tree and down another.
//!
//! A composition of the reduction `knomial_get` and the broadcast `oc_bcast`. Petrović 2015
//! describes the pipelined one-sided scheme only for the broadcast (section 3.1). In both parts
//! long data goes in chunks, two of which fit a message buffer.
//!
//! The reduction's radix is `k + 1`, so that a PE has up to `k` children per digit. `chunk_bytes`
//! is the chunk size of the broadcast; the reduction's chunks are half of the buffer.

use consort_fabric::{Candidate, Query};

use super::reduce_and_broadcast;
use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    reduce,
};

pub type OcBcast = Composed<Parts>;

/// The two parts.
#[derive(Hash)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "oc_bcast";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "k", values: &[2, 7], range: (1, 1 << 16) },
        Parameter { name: "chunk_bytes", values: &[3072, 32768], range: (1, 1 << 30) },
    ];
    type First = reduce::KnomialGet;
    type Second = broadcast::OcBcast;

    fn parts(candidate: &Candidate) -> (Candidate, Candidate) {
        let value = |name| candidate.parameter(name).unwrap_or(0);
        let reduce = Candidate::new("knomial_get").with("radix", value("k") + 1);
        let broadcast = Candidate::new("oc_bcast")
            .with("k", value("k"))
            .with("chunk_bytes", value("chunk_bytes"));
        (reduce.with("largest_first", 0), broadcast)
    }

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}
