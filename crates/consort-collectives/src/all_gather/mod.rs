//! The registry of all-gathers, which send every PE's block to every PE.

pub mod vector;

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    all_broadcast: AllBroadcast,
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    neighbour_exchange: NeighbourExchange,
    recursive_doubling: RecursiveDoubling,
    ring: Ring;
    use BarrierGet;
    use Vendor;
    Any of AllGather;
    gather_broadcast: GatherBroadcast,
    two_level: TwoLevel,
}
