//! Symmetric memory: a heap for each PE, and one-sided operations on the heaps.
//!
//! | file | what |
//! | --- | --- |
//! | `block` | a region of the heaps, at the same offset in each |
//! | `word` | atomic operations of 4 and 8 bytes |
//! | `staging` | copies of private buffers, for peers of other processes |
//! | `one_sided` | puts, gets, atomics and signals, for any thread |

pub(crate) mod block;
pub(crate) mod one_sided;
pub(crate) mod staging;
pub(crate) mod word;
