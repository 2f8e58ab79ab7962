//! Scans: the blocks of all lower ranks, combined; an inclusive scan adds the PE's own block. The
//! registry of the algorithms for both.
//!
//! An operator need only be associative: all algorithms combine in the order of the ranks.

use crate::algorithm::registry;

registry! {
    direct: Direct,
    linear: Linear,
    recursive_doubling: RecursiveDoubling,
    shared: Shared,
}
