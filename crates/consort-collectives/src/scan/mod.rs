//! The registry of scans, which combine the blocks of all lower ranks; an inclusive scan adds the
//! PE's own block.
//!
//! An operator need only be associative: all algorithms combine in rank order.

use crate::{algorithm::registry, barrier_get::BarrierGet};

registry! {
    direct: Direct,
    linear: Linear,
    recursive_doubling: RecursiveDoubling,
    shared: Shared;
    use BarrierGet;
}
