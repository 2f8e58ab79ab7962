//! Compiles the shim by an MPI's own compiler, and finds it again.
//!
//! A shim lies in the user's cache, or where `CONSORT_CACHE` says, by its MPI's flavor and a hash
//! of its source. It appears there at once, whole, so processes that all find none may all make it.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use etcetera::BaseStrategy;

use super::environment::Flavor;

/// The shim's source.
const SOURCE: &str = include_str!("shim.c");

/// The environment variable that names an MPI's compiler; `mpicc` if it is not set.
const COMPILER: &str = "CONSORT_MPICC";

/// The environment variable that names the folder for what is compiled.
const CACHE: &str = "CONSORT_CACHE";

/// A shim that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Where it is.
    pub path: PathBuf,
    /// Its MPI.
    pub flavor: Flavor,
    /// The version that the MPI tells.
    pub version: String,
}

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
    #[error("`{compiler}` cannot compile what Consort needs of MPI:\n{output}")]
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
    /// The cache cannot be written.
    #[error("what was compiled for MPI cannot be kept in {}: {error}", path.display())]
    Cache {
        /// Its folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What was compiled cannot be loaded.
    #[error("what was compiled for MPI cannot be loaded: {0}")]
    Load(String),
}

/// The name of the MPI's compiler.
fn compiler() -> String {
    env::var(COMPILER).unwrap_or_else(|_| "mpicc".to_owned())
}

/// The folder of shims.
fn folder() -> Result<PathBuf, NoShim> {
    if let Some(folder) = env::var_os(CACHE) {
        return Ok(folder.into());
    }
    let base = etcetera::choose_base_strategy().map_err(|error| NoShim::Cache {
        path: PathBuf::from("~/.cache"),
        error: io::Error::other(error),
    })?;
    Ok(base.cache_dir().join("consort"))
}

/// The file of the shim of an MPI.
fn file(folder: &Path, flavor: Flavor) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (SOURCE, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    folder.join(format!("mpi-{}-{:016x}.so", flavor.name(), hasher.finish()))
}

/// The shim of the MPI that has started this process: one that is there, or else a new one.
pub(crate) fn find(started: Flavor) -> Result<PathBuf, NoShim> {
    let path = file(&folder()?, started);
    if path.exists() {
        return Ok(path);
    }
    let Prepared { path, flavor, .. } = prepare()?;
    if flavor == started {
        Ok(path)
    } else {
        Err(NoShim::Mixed { started, compiler: compiler(), found: flavor })
    }
}

/// Compiles the shim by the MPI's compiler, and keeps it where programs find it.
///
/// # Errors
/// When there is no compiler, or it fails; when the cache cannot be written.
pub fn prepare() -> Result<Prepared, NoShim> {
    let folder = folder()?;
    let no_cache = |error| NoShim::Cache { path: folder.clone(), error };
    fs::create_dir_all(&folder).map_err(no_cache)?;
    let work = tempfile::tempdir_in(&folder).map_err(no_cache)?;
    let [source, target] = ["shim.c", "shim.so"].map(|name| work.path().join(name));
    fs::write(&source, SOURCE).map_err(no_cache)?;
    let compiler = compiler();
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&target).arg(&source);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Err(NoShim::NoCompiler { compiler, error }),
    };
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(NoShim::Compiler { compiler, output });
    }
    let version = super::library::version(&target).map_err(NoShim::Load)?;
    let flavor = Flavor::of_version(&version);
    let path = file(&folder, flavor);
    fs::rename(&target, &path).map_err(no_cache)?;
    Ok(Prepared { path, flavor, version })
}
