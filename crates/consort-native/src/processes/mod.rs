//! PEs that are processes of one machine.
//!
//! A launcher makes a file in memory that has no name, and starts the processes, which inherit it.
//! At its beginning is the *control block*, where the launcher and the processes say what they do.
//! Behind it are the segments of the launches, one after the other: a process may run several
//! programs.
//!
//! The first process that begins a launch makes its segment, and the others map it. A process that
//! ends before its program does is noticed by the launcher, which fails the launch.
//!
//! | file | what |
//! | --- | --- |
//! | `binding` | where the processes run |
//! | `control` | the state that the launcher and the processes share |
//! | `end` | how a process has ended, in a word |
//! | `member` | a process that a launcher has started |
//! | `launcher` | the launcher's part |
//! | `reports` | why processes cannot start |
//! | `statics` | the program's static variables where peers reach them; Linux only |

pub(crate) mod binding;
mod control;
pub(crate) mod end;
pub(crate) mod launcher;
pub(crate) mod member;
mod reports;
#[cfg(all(target_os = "linux", not(any(loom, miri, consort_portable))))]
pub(crate) mod statics;
