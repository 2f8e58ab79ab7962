//! Why there is no shim.

use std::{
    io,
    path::{Path, PathBuf},
};

use consort_fabric::files::{Untrusted, is_mounted_noexec};
use rustix::process::{Resource, getrlimit};

use super::environment::Flavor;

/// Why there is no shim.
#[derive(Debug, thiserror::Error)]
pub enum NoShim {
    /// There is no compiler.
    #[error(
        "there is no `{compiler}` ({error}): load the module of your MPI or install it, such as \
         `apt install libopenmpi-dev`, or name its compiler in CONSORT_MPICC"
    )]
    NoCompiler {
        /// Its name.
        compiler: String,
        /// Why it cannot be run.
        error: io::Error,
    },
    /// The compiler has failed.
    #[error(
        "`{compiler}` cannot compile what Consort needs of MPI; if `mpirun` is that of another, \
         name its compiler in CONSORT_MPICC:\n{output}"
    )]
    Compiler {
        /// Its name.
        compiler: String,
        /// What it wrote.
        output: String,
    },
    /// The compiler is that of another MPI.
    #[error(
        "this process was started by {started}, but `{compiler}` is that of {found}: use the \
         launcher and the compiler of one MPI, or name the compiler in CONSORT_MPICC"
    )]
    Mixed {
        /// The MPI that has started the process.
        started: Flavor,
        /// The compiler.
        compiler: String,
        /// Its MPI.
        found: Flavor,
    },
    /// The cache cannot be read.
    #[error(
        "what was compiled for MPI cannot be read from {}: {error}: name a folder of yours in \
         CONSORT_CACHE",
        path.display()
    )]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder for what is compiled cannot be written.
    #[error(
        "what was compiled for MPI cannot be kept in {}: {error}: name a folder that can be \
         written in {setting}",
        path.display()
    )]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
        /// The environment variable that names it.
        setting: &'static str,
    },
    /// Another user could have written what is in the cache.
    #[error(
        "what was compiled for MPI is not loaded if other users could have written it: {0}; or \
         name a folder in CONSORT_CACHE that only you may write"
    )]
    Untrusted(#[from] Untrusted),
    /// Another user could have written what is in the cache, and it cannot be compiled anew.
    #[error("{untrusted}. It cannot be compiled for this job alone either: {error}")]
    NotAnew {
        /// What is wrong with the cache.
        untrusted: Box<NoShim>,
        /// Why it cannot be compiled.
        error: Box<NoShim>,
    },
    /// A static program cannot load any library.
    #[error(
        "this program is linked statically, and no MPI can be loaded into it: build one that is \
         not, as `cargo build --release` does in Consort's sources"
    )]
    Static,
    /// The library is on a file system that is mounted `noexec`.
    #[error(
        "the file system of {} is mounted `noexec`, so that what was compiled for MPI cannot be \
         loaded from there: name a folder of another file system in {setting}",
        folder.display()
    )]
    NoExec {
        /// The folder.
        folder: PathBuf,
        /// The environment variable that names it.
        setting: &'static str,
    },
    /// What was compiled has no room in memory.
    #[error(
        "{reason}: this process may have {limit} bytes of addresses: raise that limit, as with \
         `ulimit -v unlimited`"
    )]
    NoRoom {
        /// What the loader says.
        reason: String,
        /// The limit.
        limit: u64,
    },
    /// What was compiled cannot be loaded.
    #[error(
        "what was compiled for MPI cannot be loaded; if the MPI was replaced, \
         `consort mpi prepare` compiles it again: {0}"
    )]
    Load(String),
}

impl NoShim {
    /// Why a shim in `folder`, which `setting` names, cannot be loaded. `reason` is what the loader
    /// says, which knows no causes.
    pub(crate) fn unloadable(reason: String, (folder, setting): (&Path, &'static str)) -> Self {
        let is_mapping = reason.contains("map") || reason.contains("allocate");
        if is_mounted_noexec(folder) {
            return Self::NoExec { folder: folder.to_owned(), setting };
        }
        match getrlimit(Resource::As).current {
            Some(limit) if is_mapping => Self::NoRoom { reason, limit },
            _ => Self::Load(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc` is mounted `noexec` wherever it has the usual options.
    #[test]
    fn error_of_loading_names_the_cause_and_the_setting() {
        let of = |folder| {
            let reason = "x.so: failed to map segment from shared object".to_owned();
            NoShim::unloadable(reason, (Path::new(folder), "CONSORT_CACHE")).to_string()
        };
        let text = of("/proc/self");
        let names_it = text.contains("/proc/self is mounted `noexec`");
        assert_eq!(names_it, is_mounted_noexec(Path::new("/proc/self")), "{text}");
        assert_eq!(names_it, text.ends_with("in CONSORT_CACHE"), "{text}");
        assert_ne!(names_it, text.contains("failed to map segment"), "{text}");
    }
}
