//! The registry of vector gathers, in which each PE's block may have any length.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
