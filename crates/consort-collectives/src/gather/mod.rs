//! Gathers: everyone's block, to the root. The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
