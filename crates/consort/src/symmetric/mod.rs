//! Symmetric memory: the same allocation on every PE.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | an allocation, as its PE holds it |
//! | `shared` | a handle on it for other threads |
//! | `area` | its elements, by index and rank |
//! | `element`, `word` | the types of elements |

mod area;
pub(crate) mod element;
pub(crate) mod memory;
pub(crate) mod shared;
pub(crate) mod word;
