//! The PEs of a team.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | what they share, in the segment |
//! | `group` | one member's hold on it |
//! | `matching` | whether they make the same calls |

pub(crate) mod group;
mod matching;
pub(crate) mod memory;
