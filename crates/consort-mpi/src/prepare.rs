//! Compiles the shim by an MPI's own compiler, and finds it again.
//!
//! A shim lies in the user's cache, or where `CONSORT_CACHE` says, by its MPI's flavor, and hashes
//! of its source and of its compiler's path: MPIs do not share one. It appears there at once,
//! whole, so processes that all find none may all make it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write as _},
    path::{self, Path, PathBuf},
    process::Command,
};

use consort_fabric::environment::variable;
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
    /// The cache cannot be written.
    #[error("what was compiled for MPI cannot be kept in {}: {error}", path.display())]
    Cache {
        /// Its folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A static program cannot load any library.
    #[error(
        "this program is linked statically, and no MPI can be loaded into it: build one that is \
         not, as `cargo build --release` does in Consort's sources"
    )]
    Static,
    /// What was compiled cannot be loaded.
    #[error(
        "what was compiled for MPI cannot be loaded; if the MPI was replaced, \
         `consort mpi prepare` compiles it again: {0}"
    )]
    Load(String),
}

/// The name of the MPI's compiler.
fn compiler() -> OsString {
    variable(COMPILER).unwrap_or_else(|| "mpicc".into())
}

/// The folder of shims.
fn folder() -> Result<PathBuf, NoShim> {
    if let Some(folder) = variable(CACHE) {
        // A bare name would be looked for where libraries are.
        return Ok(path::absolute(&folder).unwrap_or_else(|_| folder.into()));
    }
    let base = etcetera::choose_base_strategy().map_err(|error| NoShim::Cache {
        path: PathBuf::from("~/.cache"),
        error: io::Error::other(error),
    })?;
    Ok(base.cache_dir().join("consort"))
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What the names of the shims of a flavor begin with.
fn beginning(flavor: Flavor) -> String {
    format!("mpi-{}-{:016x}-", flavor.name(), hash((SOURCE, env!("CARGO_PKG_VERSION"))))
}

/// The file of the shim that a compiler makes.
fn file(folder: &Path, flavor: Flavor, compiler: &Path) -> PathBuf {
    folder.join(format!("{}{:016x}.so", beginning(flavor), hash(compiler)))
}

/// Where a program is, if it is there: at its path, or a bare name in a folder of `PATH`.
#[must_use]
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Where a compiler is, behind all links, if it is there.
fn place(compiler: &OsStr) -> Option<PathBuf> {
    find_program(Path::new(compiler))?.canonicalize().ok()
}

/// The end of a file with this content.
fn seal(content: &[u8]) -> [u8; 8] {
    hash(content).to_le_bytes()
}

/// Whether a file is as it was when it was kept.
fn is_whole(path: &Path) -> bool {
    let content = fs::read(path).unwrap_or_default();
    content.split_last_chunk().is_some_and(|(content, end)| seal(content) == *end)
}

/// Keeps a shim, with a seal, at its path.
fn keep(shim: &Path, path: &Path) -> io::Result<()> {
    let content = fs::read(shim)?;
    let mut file = fs::OpenOptions::new().append(true).open(shim)?;
    file.write_all(&seal(&content))?;
    fs::rename(shim, path)
}

/// The newest shim of a flavor.
fn newest(folder: &Path, flavor: Flavor) -> Option<PathBuf> {
    let shims = fs::read_dir(folder).ok()?.filter_map(Result::ok).filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(&beginning(flavor)))
    });
    let paths = shims.map(|entry| entry.path()).filter(|path| is_whole(path));
    paths.max_by_key(|path| path.metadata().and_then(|known| known.modified()).ok())
}

/// The shim of the MPI that has started this process: one that is there, or else a new one. Where
/// there is no compiler, the newest has to do.
pub(crate) fn find(started: Flavor) -> Result<PathBuf, NoShim> {
    refuse_static()?;
    let folder = folder()?;
    let there = match place(&compiler()) {
        Some(compiler) => Some(file(&folder, started, &compiler)).filter(|path| is_whole(path)),
        None => newest(&folder, started),
    };
    if let Some(path) = there {
        return Ok(path);
    }
    let Prepared { path, flavor, .. } = prepare()?;
    if flavor == started {
        Ok(path)
    } else {
        let compiler = compiler().display().to_string();
        Err(NoShim::Mixed { started, compiler, found: flavor })
    }
}

/// The folder that Intel's compiler needs as its root. The compiler of Python's package does not
/// know its own, and a variable that is set may be of another, activated MPI. Only installations
/// with the library in `lib` have the folder above `bin` as their root.
#[must_use]
pub fn intel_root(compiler: &Path) -> Option<&Path> {
    compiler.parent()?.parent().filter(|root| root.join("lib/libmpi.so").exists())
}

/// Loading ends a static program with a signal, or has no effect, depending on the C library.
fn refuse_static() -> Result<(), NoShim> {
    if cfg!(target_feature = "crt-static") { Err(NoShim::Static) } else { Ok(()) }
}

/// Compiles the shim by the MPI's compiler, and keeps it where programs find it.
///
/// # Errors
/// When there is no compiler, or it fails; when the cache cannot be written.
pub fn prepare() -> Result<Prepared, NoShim> {
    refuse_static()?;
    let folder = folder()?;
    let no_cache = |error| NoShim::Cache { path: folder.clone(), error };
    fs::create_dir_all(&folder).map_err(no_cache)?;
    let work = tempfile::tempdir_in(&folder).map_err(no_cache)?;
    let [source, target] = ["shim.c", "shim.so"].map(|name| work.path().join(name));
    fs::write(&source, SOURCE).map_err(no_cache)?;
    let program = compiler();
    let compiler = program.display().to_string();
    let mut command = Command::new(&program);
    command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&target).arg(&source);
    let place = place(&program).unwrap_or_else(|| PathBuf::from(&program));
    if let Some(root) = intel_root(&place) {
        command.env("I_MPI_ROOT", root);
    }
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
    let path = file(&folder, flavor, &place);
    keep(&target, &path).map_err(no_cache)?;
    Ok(Prepared { path, flavor, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpis_do_not_share_a_shim() {
        let [one, other] = ["/one/bin/mpicc", "/other/bin/mpicc"].map(Path::new);
        let file = |flavor, compiler| file(Path::new("/cache"), flavor, compiler);
        assert_eq!(file(Flavor::Mpich, one), file(Flavor::Mpich, one));
        assert_ne!(file(Flavor::Mpich, one), file(Flavor::Mpich, other));
        assert_ne!(file(Flavor::Mpich, one), file(Flavor::OpenMpi, one));
    }

    #[test]
    fn programs_are_at_their_path_or_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("mpicc");
        assert_eq!(find_program(&program), None);
        fs::write(&program, "").unwrap();
        assert_eq!(find_program(&program), Some(program));
        assert!(find_program(Path::new("sh")).is_some_and(|shell| shell.ends_with("sh")));
        assert_eq!(find_program(Path::new("a-program-that-nobody-has")), None);
    }

    #[test]
    fn without_a_compiler_the_newest_shim_has_to_do() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest(folder.path(), Flavor::Mpich), None);
        let shim = kept(folder.path(), "/bin/mpicc");
        assert_eq!(newest(folder.path(), Flavor::Mpich), Some(shim));
        assert_eq!(newest(folder.path(), Flavor::OpenMpi), None);
    }

    /// What is kept of a compiler's.
    fn kept(folder: &Path, compiler: &str) -> PathBuf {
        let (made, shim) = (folder.join("made"), file(folder, Flavor::Mpich, Path::new(compiler)));
        fs::write(&made, "a library").unwrap();
        keep(&made, &shim).unwrap();
        shim
    }

    #[test]
    fn a_shim_that_has_lost_a_part_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let [shim, other] = ["/bin/mpicc", "/bin/mpicc-2"].map(|at| kept(folder.path(), at));
        assert!(is_whole(&shim) && is_whole(&other));
        let whole = fs::read(&shim).unwrap();
        for bytes in 0..whole.len() {
            fs::write(&shim, &whole[..bytes]).unwrap();
            assert!(!is_whole(&shim), "{bytes}");
        }
        fs::write(&shim, vec![0; whole.len()]).unwrap();
        assert!(!is_whole(&shim));
        assert_eq!(newest(folder.path(), Flavor::Mpich), Some(other));
    }

    #[test]
    fn the_root_of_intels_compiler_is_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = folder.path().join("bin/mpicc");
        assert_eq!(intel_root(&compiler), None);
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libmpi.so"), "").unwrap();
        assert_eq!(intel_root(&compiler), Some(folder.path()));
    }
}
