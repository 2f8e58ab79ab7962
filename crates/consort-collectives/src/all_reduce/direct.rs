//! Direct all-reduce: PE 0 combines from everyone's buffers, and everyone copies from its.
//!
//! A composition of the reduction `direct` and the broadcast `direct`.

use consort_fabric::{Candidate, Query};

use super::reduce_and_broadcast;
use crate::{
    Parameter, broadcast,
    compose::{Composed, Composition},
    reduce,
};

/// See the head of this file.
pub type Direct = Composed<Parts>;

/// What it is composed of.
#[derive(Debug)]
pub struct Parts;

impl Composition for Parts {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type First = reduce::Direct;
    type Second = broadcast::Direct;

    fn parts(_: &Candidate) -> (Candidate, Candidate) {
        let reduce = Candidate::new("direct").with("block_bytes", 16384);
        (reduce, Candidate::new("direct"))
    }

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}
