//! Vector all-gathers: everyone's block, of any length, to everyone.
//! The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
