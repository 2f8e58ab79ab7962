//! Reduce and broadcast: any reduction to PE 0, and any broadcast from it.
//!
//! A composition of two parts, each by any algorithm of its collective (Nishtala, Zheng, Hargrove
//! and Yelick 2011, section 3.5), for example
//! `reduce_broadcast(knomial_get(largest_first=0,radix=4),direct)`. `flat`, `knomial`, `chain` and
//! `oc_bcast` are also such pairs, but have the parameters of a single algorithm.

use consort_fabric::Query;

use super::reduce_and_broadcast;
use crate::{
    broadcast,
    compose::open::{Open, OpenComposition},
    reduce,
};

pub type ReduceBroadcast = Open<Parts>;

/// The two parts.
#[derive(Hash)]
pub struct Parts;

impl OpenComposition for Parts {
    const NAME: &'static str = "reduce_broadcast";
    type First = reduce::Any;
    type Second = broadcast::Any;

    fn queries(query: &Query) -> (Query, Query) {
        reduce_and_broadcast(query)
    }
}
