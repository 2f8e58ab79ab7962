//! What messages arrive in.
//!
//! | file | what |
//! | --- | --- |
//! | `line` | a cache line that carries a message |
//! | `geometry` | which lines and words of a group's memory are what |
//! | `doorbell` | one word that says whether any of many lines has a message |

pub mod doorbell;
pub(crate) mod geometry;
pub mod line;
