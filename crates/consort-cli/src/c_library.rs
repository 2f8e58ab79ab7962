//! The location of a library for C and its headers: next to the installed command, or in the folder
//! where the command was built.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// A library for programs in C.
pub(crate) struct Library {
    /// The name for the linker. An installation has `lib<name>.a` and `lib<name>.so`.
    pub(crate) name: &'static str,
    /// The headers, which are in `include` of an installation.
    pub(crate) headers: &'static [&'static str],
    /// The package that builds it.
    package: &'static str,
}

/// The OpenSHMEM library.
pub(crate) const SHMEM: Library = Library {
    name: "consort_shmem",
    headers: &["shmem.h", "shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h"],
    package: "consort-shmem",
};
/// The library for threads.
pub(crate) const THREADS: Library =
    Library { name: "consort", headers: &["consort.h"], package: "consort-c" };

/// The system libraries that the library needs.
pub(crate) const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// The folder in which the command was built; in a release, the folder that `CONSORT_SOURCES`
/// named.
const SOURCES: &str = match option_env!("CONSORT_SOURCES") {
    Some(folder) => folder,
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
};

/// The files of a library.
pub(crate) struct CLibrary {
    pub(crate) archive: PathBuf,
    pub(crate) include: PathBuf,
}

impl Library {
    /// Returns the name of the archive in an installation.
    pub(crate) fn archive(&self) -> String {
        format!("lib{}.a", self.name)
    }

    /// Looks next to the running command.
    pub(crate) fn find(&self) -> Result<CLibrary> {
        let command = env::current_exe().and_then(|path| path.canonicalize());
        self.next_to(&command.context("cannot find the path of this command")?)
    }

    fn next_to(&self, command: &Path) -> Result<CLibrary> {
        let folder = command.parent().unwrap_or(Path::new("/"));
        let prefix = folder.parent().unwrap_or(Path::new("/"));
        let archive = prefix.join("lib").join(self.archive());
        let installed = CLibrary { archive, include: prefix.join("include") };
        if self.is_in(&installed) {
            return Ok(installed);
        }
        let include = Path::new(SOURCES).join("crates").join(self.package).join("include");
        let name = format!("lib{}.a", self.package.replace('-', "_"));
        let built = CLibrary { archive: folder.join(&name), include };
        if !self.is_in(&built) {
            bail!(
                "cannot find {name} with its headers in {} or next to this command in {}: run \
                 `cargo build --release` in Consort's folder, then `target/release/consort \
                 install --prefix DIR`, and use DIR/bin/consort",
                prefix.join("lib").display(),
                folder.display(),
            );
        }
        Ok(built)
    }

    fn is_in(&self, files: &CLibrary) -> bool {
        files.archive.is_file()
            && self.headers.iter().all(|name| files.include.join(name).is_file())
    }
}

impl CLibrary {
    /// Returns the folder of the library.
    pub(crate) fn folder(&self) -> &Path {
        self.archive.parent().unwrap_or(Path::new("/"))
    }
}
