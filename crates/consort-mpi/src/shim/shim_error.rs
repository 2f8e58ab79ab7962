//! The reasons why the shim cannot be used.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use consort_fabric::files::Untrusted;
use consort_machine::permissions::is_mounted_noexec;
use rustix::process::{Resource, getrlimit};

use crate::environment::Flavor;

/// The reason why the shim cannot be used.
#[derive(Debug)]
pub enum ShimError {
    /// There is no compiler.
    NoCompiler {
        /// Its name.
        compiler: String,
        /// Why it cannot be run.
        error: io::Error,
    },
    /// The compiler has failed.
    Compiler {
        /// Its name.
        compiler: String,
        /// Its output.
        output: String,
    },
    /// The compiler belongs to another MPI.
    Mixed {
        /// The MPI that started the process.
        started: Flavor,
        /// The compiler.
        compiler: String,
        /// The compiler's MPI.
        found: Flavor,
    },
    /// The cache cannot be read.
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The folder for compiled shims cannot be written.
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
        /// The environment variable that names it.
        setting: &'static str,
    },
    /// Another user could have written the contents of the cache.
    Untrusted(Untrusted),
    /// Another user could have written the cache, and the shim cannot be compiled again.
    NotAnew {
        /// The problem with the cache.
        untrusted: Box<ShimError>,
        /// Why it cannot be compiled.
        error: Box<ShimError>,
    },
    /// A static program cannot load libraries.
    Static,
    /// The library is on a file system that is mounted `noexec`.
    NoExec {
        /// The folder.
        folder: PathBuf,
        /// The environment variable that names it.
        setting: &'static str,
    },
    /// The shim does not fit into memory.
    NoRoom {
        /// The loader's message.
        reason: String,
        /// The limit.
        limit: u64,
    },
    /// The shim cannot be loaded.
    Load(String),
}

impl fmt::Display for ShimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCompiler { compiler, error } => write!(
                f,
                "cannot find `{compiler}` ({error}): load the module of your MPI or install it, \
                 such as `apt install libopenmpi-dev`, or name its compiler in CONSORT_MPICC"
            ),
            Self::Compiler { compiler, output } => write!(
                f,
                "`{compiler}` cannot compile Consort's MPI adapter; if `mpirun` is from another \
                 MPI, name its compiler in CONSORT_MPICC:\n{output}"
            ),
            Self::Mixed { started, compiler, found } => write!(
                f,
                "this process was started by {started}, but `{compiler}` is from {found}: use the \
                 launcher and the compiler of one MPI, or name the compiler in CONSORT_MPICC"
            ),
            Self::Unreadable { path, error } => write!(
                f,
                "cannot read the compiled MPI adapter from {}: {error}: name a folder of yours in \
                 CONSORT_CACHE",
                path.display()
            ),
            Self::Unwritable { path, error, setting } => write!(
                f,
                "cannot keep the compiled MPI adapter in {}: {error}: name a writable folder in \
                 {setting}",
                path.display()
            ),
            Self::Untrusted(error) => write!(
                f,
                "the compiled MPI adapter is not loaded if other users could have written it: \
                 {error}; or name a folder in CONSORT_CACHE that only you may write"
            ),
            Self::NotAnew { untrusted, error } => write!(
                f,
                "{untrusted}. It cannot be compiled for this job alone either: \
                 {error}"
            ),
            Self::Static => f.write_str(
                "this program is linked statically, and cannot load an MPI: build it with dynamic \
                 linking, as `cargo build --release` does in Consort's sources",
            ),
            Self::NoExec { folder, setting } => write!(
                f,
                "the file system of {} is mounted `noexec`, so the compiled MPI adapter cannot be \
                 loaded from there: name a folder of another file system in {setting}",
                folder.display()
            ),
            Self::NoRoom { reason, limit } => write!(
                f,
                "{reason}: the address space of this process is limited to {limit} bytes: raise \
                 that limit, for example with `ulimit -v unlimited`"
            ),
            Self::Load(text) => write!(
                f,
                "cannot load the compiled MPI adapter; if the MPI was replaced, `consort mpi \
                 prepare` compiles it again: {text}"
            ),
        }
    }
}

impl std::error::Error for ShimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Untrusted(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Untrusted> for ShimError {
    fn from(error: Untrusted) -> Self {
        Self::Untrusted(error)
    }
}

impl ShimError {
    /// Returns why a shim in `folder`, which `setting` names, cannot be loaded. `reason` is the
    /// loader's message, which does not include the cause.
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

    /// The usual options mount `/proc` with `noexec`.
    #[test]
    fn error_of_loading_names_the_cause_and_the_setting() {
        let of = |folder| {
            let reason = "x.so: failed to map segment from shared object".to_owned();
            ShimError::unloadable(reason, (Path::new(folder), "CONSORT_CACHE")).to_string()
        };
        let text = of("/proc/self");
        let names_it = text.contains("/proc/self is mounted `noexec`");
        assert_eq!(names_it, is_mounted_noexec(Path::new("/proc/self")), "{text}");
        assert_eq!(names_it, text.ends_with("in CONSORT_CACHE"), "{text}");
        assert_ne!(names_it, text.contains("failed to map segment"), "{text}");
    }
}
