//! Gathers: every PE's block, to the root. The registry of their algorithms.

pub mod vector;

use crate::{Vendor, algorithm::registry};

registry! {
    direct: Direct,
    knomial: Flat Knomial,
    oc_bcast: OcBcast;
    use Vendor;
    Any;
    two_level: TwoLevel,
}
