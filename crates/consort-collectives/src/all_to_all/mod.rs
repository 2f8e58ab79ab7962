//! All-to-alls: a block from everyone to everyone. The registry of their algorithms.

pub mod vector;

use crate::algorithm::registry;

registry! {
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
}
