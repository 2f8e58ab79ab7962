//! The registry of reductions, which combine every PE's data on the root.
//!
//! `flat`, `knomial`, `chain` and `pipelined` (file `knomial`) send chunks up trees of different
//! shapes. `knomial_get` combines from message buffers, up a tree. `direct` and `shared` combine
//! from the callers' buffers. An operator need only be associative. If it is not commutative, all
//! algorithms combine in rank order, or refuse the call.

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

pub(crate) use direct::{combine_in_order, combines_own_first};

registry! {
    direct: Direct,
    knomial: Chain Flat Knomial Pipelined,
    knomial_get: KnomialGet,
    shared: Shared;
    use BarrierGet;
    use Vendor;
    Any of Reduce;
    two_level: TwoLevel,
}
