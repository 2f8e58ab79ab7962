//! The directory of a job: regions of memory, teams, and names of calls. PEs agree on them without
//! a message.
//!
//! The directory is flat memory in the job's segment, under one lock, without pointers. When all
//! members of a team make the same request, the first request decides and the others find the
//! result.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | the memory and its lock |
//! | `blocks`, `groups`, `call_names` | the three kinds of contents |
//! | `keys`, `map` | entries and their keys |
//! | `region_allocator` | the allocator of regions, of heaps and of the memory for groups |
//! | `group_arena`, `group_error` | the memory for groups, and the error if there is not enough |
//! | `names` | the names of calls and their numbers |
//! | `locked_words` | words that are accessed under the lock |

pub(crate) mod blocks;
pub(crate) mod call_names;
pub(crate) mod group_arena;
pub(crate) mod group_error;
pub(crate) mod groups;
mod keys;
pub(crate) mod lock;
pub(crate) mod locked_words;
mod map;
mod names;
mod region_allocator;
#[cfg(test)]
mod tests;
