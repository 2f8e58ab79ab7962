//! Teams.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | the memory of a group, in the segment |
//! | `group` | a group as one member sees it |
//! | `matching` | checks that members make the same calls |
//! | `telling` | tells members of what was stored for them |

pub(crate) mod group;
mod matching;
pub(crate) mod memory;
pub(crate) mod telling;
