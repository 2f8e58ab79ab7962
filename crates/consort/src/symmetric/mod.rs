//! Symmetric memory: the same allocation on every PE.
//!
//! | file | contents |
//! | --- | --- |
//! | `memory` | an allocation or a range of it, from the view of its PE |
//! | `access`, `signals` | its one-sided operations |
//! | `shared` | a handle on it for other threads |
//! | `area` | its elements, by index and rank |
//! | `element`, `word` | the types of elements |

mod access;
mod area;
pub(crate) mod element;
pub(crate) mod memory;
pub(crate) mod shared;
mod signals;
pub(crate) mod word;
