//! Vector gathers: every PE's block, of any length, to the root.
//! The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
