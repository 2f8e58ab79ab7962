//! The registry of all-gathers, which send every PE's block to every PE.

pub mod vector;

use crate::{Vendor, algorithm::registry};

registry! {
    all_broadcast: AllBroadcast,
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    neighbour_exchange: NeighbourExchange,
    recursive_doubling: RecursiveDoubling,
    ring: Ring;
    use Vendor;
    Any;
    gather_broadcast: GatherBroadcast,
    two_level: TwoLevel,
}
