//! Vector all-gathers: every PE's block, of any length, to every PE.
//! The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
