//! The registry of scatters, which send block `i` of the root to PE `i`.

pub mod vector;

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    direct: Direct,
    knomial: Flat Knomial,
    oc_bcast: OcBcast;
    use BarrierGet;
    use Vendor;
    Any of Scatter;
    two_level: TwoLevel,
}
