//! Scans: the blocks of the PEs before one, and its own if it is inclusive, combined. The registry
//! of the algorithms of both.
//!
//! An operator need only be associative: all combine in the order of the ranks.

use crate::algorithm::registry;

registry! {
    direct: Direct,
    linear: Linear,
    recursive_doubling: RecursiveDoubling,
}
