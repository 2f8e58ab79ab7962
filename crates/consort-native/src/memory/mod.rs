//! Access to this PE's memory, including memory that others access at the same time.
//!
//! | file | what |
//! | --- | --- |
//! | `region`, `word`, `extent` | the place of memory, and whether others may access it |
//! | `copy`, `portable` | copies that may race: by an assembly block, or by atomic operations |
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
