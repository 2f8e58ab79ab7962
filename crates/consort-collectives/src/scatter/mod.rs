//! Scatters: block `i` of the root, to PE `i`. The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
