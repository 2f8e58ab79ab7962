//! What the PEs of a job have to agree on without a message: regions of memory, teams, calls'
//! names.
//!
//! All of it is flat memory in the job's segment, under one lock: no pointer of a process stands in
//! it. Whoever comes first to something that all members of a team come to decides it, and the
//! others find it decided.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | the memory and its lock |
//! | `blocks`, `groups`, `call_names` | what is agreed on |
//! | `keys`, `map` | entries, and what they are found by |
//! | `space` | which region of a heap, or of the memory for groups, is taken |
//! | `names` | the names of calls and their numbers |
//! | `locked_words` | words that whoever holds the lock reads and writes |

pub(crate) mod blocks;
pub(crate) mod call_names;
pub(crate) mod groups;
mod keys;
pub(crate) mod lock;
mod locked_words;
mod map;
mod names;
mod space;
#[cfg(test)]
mod tests;
