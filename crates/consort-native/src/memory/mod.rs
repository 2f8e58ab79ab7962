//! Access to this PE's memory, including memory that other threads access at the same time.
//!
//! | file | what |
//! | --- | --- |
//! | `region`, `word`, `extent` | a place in memory, and whether others may access it |
//! | `copy`, `portable` | copies that may race: in inline assembly, or by atomic operations |
//! | `transfer`, `combine` | copies of any kind, and operators |

mod combine;
mod copy;
pub(crate) mod extent;
#[cfg(any(test, not(target_arch = "x86_64"), miri))]
mod portable;
pub(crate) mod region;
#[cfg(test)]
mod tests;
mod transfer;
pub(crate) mod word;
