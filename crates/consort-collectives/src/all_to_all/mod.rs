//! Exchanges: a block from everyone to everyone, MPI's all-to-all. The registry of their
//! algorithms.

pub mod vector;

use crate::algorithm::registry;

registry! {
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
}
