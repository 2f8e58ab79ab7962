//! The registry of all-to-alls, which move a block from every PE to every PE.

pub mod vector;

use crate::{Vendor, algorithm::registry};

registry! {
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise;
    use Vendor;
    Any;
    two_level: TwoLevel,
}
