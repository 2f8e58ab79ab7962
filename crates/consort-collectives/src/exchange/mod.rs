//! Exchanges: a block from everyone to everyone, MPI's all-to-all. The registry of their
//! algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
