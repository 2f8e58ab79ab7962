//! Teams of PEs.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | the memory of a group, in the segment |
//! | `group` | a group as one member sees it |
//! | `matching` | checks that members make the same calls |
//! | `message` | the names of messages between two members |
//! | `notify` | notifies members of words that were stored for them |

pub(crate) mod group;
mod matching;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod notify;
