//! PEs that are processes of one machine.
//!
//! A launcher creates an unnamed file in memory and starts the processes, which inherit it. At the
//! beginning of the file is the *control block*, where the launcher and the processes record their
//! states. After it come the segments of the launches, one after the other: a process may run
//! several programs.
//!
//! The first process that begins a launch makes the launch's segment, and the others map it. If a
//! process ends before its program does, the launcher notices and fails the launch.
//!
//! | file | what |
//! | --- | --- |
//! | `binding` | the placement of the processes |
//! | `control` | the state that the launcher and the processes share |
//! | `process_end` | how a process has ended, encoded in a word |
//! | `member` | a process that a launcher has started |
//! | `launcher` | the launcher's part |
//! | `reports` | why processes cannot start |
//! | `statics` | the program's static variables in memory that peers can access; Linux only |

pub(crate) mod binding;
mod control;
pub(crate) mod launcher;
pub(crate) mod member;
pub(crate) mod process_end;
mod reports;
#[cfg(all(target_os = "linux", not(any(loom, miri, consort_portable))))]
pub(crate) mod statics;
