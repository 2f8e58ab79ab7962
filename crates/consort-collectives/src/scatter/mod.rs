//! The registry of scatters, which send block `i` of the root to PE `i`.

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
