//! The subcommands, one per file; none imports another.

pub(crate) mod bench;
pub(crate) mod cc;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod install;
pub(crate) mod man;
pub(crate) mod mpi;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod sync;
pub(crate) mod topo;
pub(crate) mod tune;
pub(crate) mod wisdom;
