//! The location of the OpenSHMEM library and its headers: next to the installed command, or in the
//! folder where the command was built.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The name of the library for the linker.
pub(crate) const NAME: &str = "consort_shmem";
/// The library to link, which is in `lib` of an installation.
pub(crate) const ARCHIVE: &str = "libconsort_shmem.a";
/// The headers, which are in `include` of an installation.
pub(crate) const HEADERS: [&str; 5] =
    ["shmem.h", "shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h"];
/// The system libraries that the library needs.
pub(crate) const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// The folder in which the command was built, or where the sources of a release would be.
const SOURCES: &str = match option_env!("CONSORT_SOURCES") {
    Some(folder) => folder,
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
};

/// The library and its headers.
pub(crate) struct CLibrary {
    pub(crate) archive: PathBuf,
    pub(crate) include: PathBuf,
}

impl CLibrary {
    /// Looks next to the running command.
    pub(crate) fn find() -> Result<Self> {
        let command = env::current_exe().and_then(|path| path.canonicalize());
        Self::next_to(&command.context("cannot find the path of this command")?)
    }

    fn next_to(command: &Path) -> Result<Self> {
        let folder = command.parent().unwrap_or(Path::new("/"));
        let prefix = folder.parent().unwrap_or(Path::new("/"));
        let installed =
            Self { archive: prefix.join("lib").join(ARCHIVE), include: prefix.join("include") };
        if installed.exists() {
            return Ok(installed);
        }
        let include = Path::new(SOURCES).join("crates/consort-shmem/include");
        let built = Self { archive: folder.join(ARCHIVE), include };
        if !built.exists() {
            bail!(
                "cannot find {ARCHIVE} with its headers in {} or next to this command in {}: run \
                 `cargo build --release` in Consort's folder, then `target/release/consort \
                 install --prefix DIR`, and use DIR/bin/consort",
                prefix.join("lib").display(),
                folder.display(),
            );
        }
        Ok(built)
    }

    /// Returns the folder of the library.
    pub(crate) fn folder(&self) -> &Path {
        self.archive.parent().unwrap_or(Path::new("/"))
    }

    fn exists(&self) -> bool {
        self.archive.is_file() && HEADERS.iter().all(|name| self.include.join(name).is_file())
    }
}
