//! Memory on this PE, also such as others access meanwhile.
//!
//! | file | what |
//! | --- | --- |
//! | `region`, `word`, `extent` | where it is, and who may access it |
//! | `copy`, `portable` | copies that may race: by an assembly block, and by atomic operations |
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
