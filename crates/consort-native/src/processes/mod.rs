//! PEs that are processes of one machine.
//!
//! They share an unnamed file in memory, the *control file*. At its beginning is the *control
//! block*, where the processes record their states. After it come the segments of the launches, one
//! after the other: a process may run several programs.
//!
//! A launcher creates the file and starts the processes, which inherit it. Or the processes exist
//! already: they meet, and one of them creates the file. The first process that begins a launch
//! makes the launch's segment, and the others map it. If a process ends before its program does,
//! the launcher or another process notices, and fails the launch.
//!
//! | file | what |
//! | --- | --- |
//! | `binding` | the placement of the processes |
//! | `control` | the state that the launcher and the processes share |
//! | `control_file` | the file with that state, and the reaction to the end of a process |
//! | `process_end` | how a process has ended, encoded in a word |
//! | `pe_process` | a process that is one of the PEs of a job |
//! | `launcher` | the launcher's part |
//! | `meeting` | processes that exist already become the PEs of a job |
//! | `watch` | these processes watch each other |
//! | `rank_list` | lists of ranks, for messages |
//! | `reports` | why processes cannot start |
//! | `statics` | the program's static variables in memory that peers can access; Linux only |

pub(crate) mod binding;
mod control;
mod control_file;
pub(crate) mod launcher;
pub(crate) mod meeting;
pub(crate) mod pe_process;
pub(crate) mod process_end;
pub(crate) mod rank_list;
mod reports;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod statics;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod watch;
