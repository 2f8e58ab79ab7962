//! All-to-alls: a block from every PE to every PE. The registry of their algorithms.

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
