//! All-gathers: everyone's block, to everyone. The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
}
