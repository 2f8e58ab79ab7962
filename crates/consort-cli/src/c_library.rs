//! Where the OpenSHMEM library and its headers are: installed beside the command, or where the
//! command was built.

use std::{
    env::{self, VarError},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The library to link, which is in `lib` of an installation.
pub(crate) const ARCHIVE: &str = "libconsort_shmem.a";
/// The headers, which are in `include` of an installation.
pub(crate) const HEADERS: [&str; 5] =
    ["shmem.h", "shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h"];
/// What the library needs of the system.
pub(crate) const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// The folder that the command was built in, or where a release says that sources would be.
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
    /// Looks beside the command that runs.
    pub(crate) fn find() -> Result<Self> {
        let command = env::current_exe().and_then(|path| path.canonicalize());
        Self::beside(&command.context("this command is nowhere")?)
    }

    fn beside(command: &Path) -> Result<Self> {
        let folder = command.parent().unwrap_or(Path::new("/"));
        let prefix = folder.parent().unwrap_or(Path::new("/"));
        let installed =
            Self { archive: prefix.join("lib").join(ARCHIVE), include: prefix.join("include") };
        if installed.is_there() {
            return Ok(installed);
        }
        let include = Path::new(SOURCES).join("crates/consort-shmem/include");
        let built = Self { archive: folder.join(ARCHIVE), include };
        if !built.is_there() {
            bail!(
                "there is no {ARCHIVE} with its headers, neither in {} nor beside this command in \
                 {}: run `cargo build --release` in Consort's folder, then `target/release/consort \
                 install --prefix DIR`, and use DIR/bin/consort",
                prefix.join("lib").display(),
                folder.display(),
            );
        }
        Ok(built)
    }

    fn is_there(&self) -> bool {
        self.archive.is_file() && HEADERS.iter().all(|name| self.include.join(name).is_file())
    }
}

/// The compiler that a variable names, with options behind it, as in make; nothing if it is not
/// set.
///
/// # Errors
/// When it is not Unicode.
pub(crate) fn compiler_of(variable: &str) -> Result<String> {
    match env::var(variable) {
        Err(VarError::NotUnicode(text)) => {
            bail!("{variable} is `{}`: name a compiler", text.display())
        }
        text => Ok(text.unwrap_or_default()),
    }
}

/// What to say of a program that could not be started.
pub(crate) fn not_started(program: &str, error: &io::Error) -> String {
    format!("cannot start `{program}`: {error}")
}
