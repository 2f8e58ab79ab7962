//! The registry of vector scatters, which send block `i` of the root, of any length, to PE `i`.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
