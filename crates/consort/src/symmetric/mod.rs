//! Symmetric memory.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | an allocation, as a PE holds it |
//! | `shared` | the same for other threads |
//! | `area` | its elements, by index and rank |
//! | `element`, `word` | what it holds |

mod area;
pub(crate) mod element;
pub(crate) mod memory;
pub(crate) mod shared;
pub(crate) mod word;
