//! Vector scatters: block `i` of the root, of any length, to PE `i`.
//! The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
