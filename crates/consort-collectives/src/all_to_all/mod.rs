//! The registry of all-to-alls, which move a block from every PE to every PE.

pub mod vector;

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise;
    use BarrierGet;
    use Vendor;
    Any of AllToAll;
    two_level: TwoLevel,
}
