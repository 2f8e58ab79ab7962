//! The registry of gathers, which send every PE's block to the root.

pub mod vector;

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    direct: Direct,
    knomial: Flat Knomial,
    oc_bcast: OcBcast;
    use BarrierGet;
    use Vendor;
    Any of Gather;
    two_level: TwoLevel,
}
