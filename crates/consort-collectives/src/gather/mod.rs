//! The registry of gathers, which send every PE's block to the root.

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
