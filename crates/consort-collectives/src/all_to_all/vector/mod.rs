//! Vector all-to-alls: a block of any length from every PE to every PE, MPI's all-to-allv.
//! The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
