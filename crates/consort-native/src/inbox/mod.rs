//! Inboxes: the memory in which messages arrive.
//!
//! | file | what |
//! | --- | --- |
//! | `line` | a cache line that carries a message |
//! | `geometry` | the layout of a group's memory, in lines and words |
//! | `doorbell` | one word that shows whether any of many lines has a message |

pub mod doorbell;
pub(crate) mod geometry;
pub mod line;
