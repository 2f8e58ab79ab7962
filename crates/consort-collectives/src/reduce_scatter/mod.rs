//! Reduce-scatters: everyone's blocks `i` combined, on PE `i`. The registry of their algorithms.
//!
//! An operator need only be associative: all combine in the order of the ranks.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
