//! Compiles the shim with an MPI's own compiler, or finds a stored one.
//!
//! Shims are stored in the user's cache, or in the folder that `CONSORT_CACHE` names (`cache`). If
//! other users could have written one, it is not loaded: the shim is compiled again in a private
//! folder, for this process only, and the job warns once.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind},
    os::fd::IntoRawFd as _,
    path::{self, Path, PathBuf},
    process::Command,
};

use consort_fabric::{
    environment::variable,
    files::{self, start_error},
};
use tempfile::TempDir;

use super::{
    cache::{CACHE, Cache, SOURCE, private},
    library::{self, Shim},
    shim_error::ShimError,
};
use crate::environment::Flavor;

/// The environment variable that names an MPI's compiler; `mpicc` if it is not set.
const COMPILER: &str = "CONSORT_MPICC";

/// The environment variable that names the folder for temporary files.
const TEMPORARY: &str = "TMPDIR";

/// A shim that is stored in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedShim {
    /// Its path.
    pub path: PathBuf,
    /// Its MPI.
    pub flavor: Flavor,
    /// The MPI's version text.
    pub version: String,
}

/// A shim that has just been compiled.
struct CompiledShim {
    path: PathBuf,
    flavor: Flavor,
    version: String,
}

/// A folder for compiling that no one else can change. Its path may lead through folders of other
/// users, who could replace it by another folder.
struct PrivateFolder {
    /// Removes the folder when dropped.
    folder: TempDir,
    /// A path through a descriptor, for this process and for its children until they run another
    /// program.
    path: PathBuf,
}

/// Returns the name of the MPI's compiler.
fn compiler() -> OsString {
    variable(COMPILER).unwrap_or_else(|| "mpicc".into())
}

/// Returns the path of a program, if it exists: a path, or a bare name in a folder of `PATH`.
#[must_use]
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns the path of a compiler with all links resolved, if it exists.
fn place(compiler: &OsStr) -> Option<PathBuf> {
    find_program(Path::new(compiler))?.canonicalize().ok()
}

/// Returns the folder that Intel's compiler needs as its root. The compiler of Intel's Python
/// package does not know its root, and the variable may be set for another, activated MPI. The root
/// is the folder above `bin`, if the library is in its `lib`. Otherwise returns `None`.
#[must_use]
pub fn intel_root(compiler: &Path) -> Option<&Path> {
    compiler.parent()?.parent().filter(|root| root.join("lib/libmpi.so").exists())
}

/// Fails in a static program, in which loading is fatal or has no effect, depending on the C
/// library.
fn refuse_static() -> Result<(), ShimError> {
    if cfg!(target_feature = "crt-static") { Err(ShimError::Static) } else { Ok(()) }
}

/// Loads the shim of the MPI that has started this process: a stored one, otherwise a new one.
/// Without a compiler, the newest is taken. Also returns why a stored shim is not used, if that is
/// so.
pub(crate) fn load(started: Flavor) -> Result<(Shim, Option<String>), ShimError> {
    refuse_static()?;
    load_by(started, &Cache::here()?, &compiler())
}

fn load_by(
    started: Flavor,
    cache: &Cache,
    compiler: &OsStr,
) -> Result<(Shim, Option<String>), ShimError> {
    let untrusted = match cache.kept(started, place(compiler).as_deref()) {
        Ok(Some(path)) => return Ok((shim(&path, (cache.folder(), CACHE))?, None)),
        Ok(None) => match prepare_in(cache, compiler) {
            Ok(CachedShim { path, flavor, .. }) => {
                ensure_same(started, flavor, compiler)?;
                return Ok((shim(&path, (cache.folder(), CACHE))?, None));
            }
            Err(ShimError::Untrusted(why)) => why,
            Err(error) => return Err(error),
        },
        Err(ShimError::Untrusted(why)) => why,
        Err(error) => return Err(error),
    };
    let said = format!(
        "the MPI adapter in {} is not used, because other users could have written it: \
         {untrusted}; each process compiles one until CONSORT_CACHE names a folder that only you \
         may write",
        cache.folder().display()
    );
    match compiled_in_private(started, compiler) {
        Ok(shim) => Ok((shim, Some(said))),
        Err(error) => {
            let untrusted = Box::new(ShimError::Untrusted(untrusted));
            Err(ShimError::NotAnew { untrusted, error: Box::new(error) })
        }
    }
}

/// Loads the shim at `path`, which is in the folder that a setting names.
fn shim(path: &Path, at: (&Path, &'static str)) -> Result<Shim, ShimError> {
    Shim::load(path).map_err(|reason| ShimError::unloadable(reason, at))
}

/// Fails unless the compiler belongs to the MPI that has started this process.
fn ensure_same(started: Flavor, found: Flavor, compiler: &OsStr) -> Result<(), ShimError> {
    if found == started {
        return Ok(());
    }
    Err(ShimError::Mixed { started, compiler: compiler.display().to_string(), found })
}

/// Compiles the shim in a private folder, and loads it from there.
fn compiled_in_private(started: Flavor, compiler: &OsStr) -> Result<Shim, ShimError> {
    let private = PrivateFolder::new()?;
    let at = (private.folder.path(), TEMPORARY);
    let compiled = compile(&private.path, at, compiler)?;
    ensure_same(started, compiled.flavor, compiler)?;
    shim(&compiled.path, at)
}

impl PrivateFolder {
    fn new() -> Result<Self, ShimError> {
        let (path, setting) = (env::temp_dir(), TEMPORARY);
        let no_folder = |error| ShimError::Unwritable { path: path.clone(), error, setting };
        let folder = private().tempdir().map_err(no_folder)?;
        let file = files::open_private_folder(folder.path()).map_err(no_folder)?;
        // The loader identifies libraries by their paths, so the descriptor stays open: its number
        // must not name another folder later.
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.into_raw_fd()));
        Ok(Self { folder, path })
    }
}

/// Compiles the shim with the MPI's compiler, and stores it where programs find it.
///
/// # Errors
/// When there is no compiler, or it fails; when the cache cannot be written, or others can write
/// it.
pub fn prepare() -> Result<CachedShim, ShimError> {
    refuse_static()?;
    prepare_in(&Cache::here()?, &compiler())
}

fn prepare_in(cache: &Cache, compiler: &OsStr) -> Result<CachedShim, ShimError> {
    let work = cache.workplace()?;
    let at = (cache.folder(), CACHE);
    let CompiledShim { path, flavor, version } = compile(work.path(), at, compiler)?;
    let place = place(compiler).unwrap_or_else(|| PathBuf::from(compiler));
    Ok(CachedShim { path: cache.keep(&path, flavor, &place)?, flavor, version })
}

/// Compiles the shim in `work`, a folder that no one else can change, and reads its MPI's version.
/// Errors name the folder and the setting of `at`.
fn compile(
    work: &Path,
    at @ (folder, setting): (&Path, &'static str),
    program: &OsStr,
) -> Result<CompiledShim, ShimError> {
    let compiler = program.display().to_string();
    let no_compiler = |error| ShimError::NoCompiler { compiler: compiler.clone(), error };
    let unwritable = |error| ShimError::Unwritable { path: folder.to_owned(), error, setting };
    fs::write(work.join("shim.c"), SOURCE).map_err(unwritable)?;
    let found = find_program(Path::new(program));
    let found = found.ok_or_else(|| no_compiler(ErrorKind::NotFound.into()))?;
    // The path is absolute because the compiler runs in `work`. It keeps its links because some
    // compilers choose their behaviour by their name.
    let mut command = Command::new(path::absolute(found).map_err(no_compiler)?);
    command.args(["-O2", "-shared", "-fPIC", "-o", "shim.so", "shim.c"]).current_dir(work);
    if let Some(root) = place(program).as_deref().and_then(intel_root) {
        command.env("I_MPI_ROOT", root);
    }
    let output = command.output().map_err(|error| {
        no_compiler(io::Error::new(
            error.kind(),
            start_error(Path::new(command.get_program()), &error),
        ))
    })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(ShimError::Compiler { compiler, output });
    }
    let path = work.join("shim.so");
    let version = library::version(&path).map_err(|reason| ShimError::unloadable(reason, at))?;
    Ok(CompiledShim { path, flavor: Flavor::of_version(&version), version })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    /// Creates an MPI compiler that compiles a library with the functions needed here.
    fn compiler(folder: &Path) -> PathBuf {
        let (program, source) = (folder.join("mpicc"), folder.join("mpi.c"));
        let names = ["begin", "open", "gather", "send", "probe", "receive", "lead", "collect"];
        let names = names.into_iter().chain(["push", "pull", "test", "cancel", "close", "abort"]);
        let functions =
            names.chain(["error"]).map(|name| format!("void consort_mpi_{name}() {{}}"));
        let version = "void consort_mpi_version(char *text, int bytes) {\n\
                       static const char version[] = \"Open MPI v9\";\n\
                       for (int at = 0; at < sizeof version && at < bytes; at++)\n\
                       text[at] = version[at];\n}\n";
        let functions = functions.collect::<Vec<_>>().join("\n");
        fs::write(&source, format!("{version}{functions}\n")).unwrap();
        let script = format!(
            "#!/bin/sh\ncat shim.c > {0}/given.c\ncc -shared -fPIC -o shim.so {0}/mpi.c\n",
            folder.display()
        );
        fs::write(&program, script).unwrap();
        set(&program, 0o755);
        program
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
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
    fn the_root_of_intels_compiler_is_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = folder.path().join("bin/mpicc");
        assert_eq!(intel_root(&compiler), None);
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libmpi.so"), "").unwrap();
        assert_eq!(intel_root(&compiler), Some(folder.path()));
    }

    /// A planted shim would end the test by its constructor.
    #[test]
    fn planted_shim_is_not_loaded_and_is_compiled_in_a_private_folder() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = compiler(folder.path());
        let cache = Cache::at(&folder.path().join("cache")).unwrap();
        let load = || load_by(Flavor::OpenMpi, &cache, compiler.as_os_str());
        let said = |loaded: Result<(Shim, Option<String>), ShimError>| {
            loaded.unwrap_or_else(|error| panic!("{error}")).1
        };
        assert_eq!(said(load()), None, "it is compiled and kept");
        assert_eq!(fs::read_to_string(folder.path().join("given.c")).unwrap(), SOURCE);
        fs::remove_file(folder.path().join("given.c")).unwrap();
        assert_eq!(said(load()), None, "it is found again");
        assert!(!folder.path().join("given.c").exists());

        // Another user plants a whole shim under the name that anyone can know.
        let kept = fs::read_dir(cache.folder()).unwrap().next().unwrap().unwrap().path();
        let (source, made) = (folder.path().join("planted.c"), folder.path().join("planted.so"));
        let text = "#include <unistd.h>\n__attribute__((constructor)) void f() { _exit(9); }\n";
        fs::write(&source, text).unwrap();
        let cc =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&made, &source]).status();
        assert!(cc.unwrap().success());
        let place = place(compiler.as_os_str()).unwrap();
        assert_eq!(cache.keep(&made, Flavor::OpenMpi, &place).unwrap(), kept);
        set(cache.folder(), 0o777);
        let why = said(load()).expect("a warning");
        assert!(why.contains("cache may be written by other users"), "{why}");
        assert!(folder.path().join("given.c").exists(), "it was compiled");
        let error = prepare_in(&cache, compiler.as_os_str()).unwrap_err();
        assert!(matches!(error, ShimError::Untrusted(_)), "{error}");
        // Only root can change the owner of a file. In a folder like /tmp, the owner is the only
        // thing that makes it unsafe.
        set(cache.folder(), 0o1777);
        if rustix::process::geteuid().is_root() {
            chown(&kept, Some(65534), None).unwrap();
            let why = said(load()).expect("a warning");
            assert!(why.contains("belongs to user 65534"), "{why}");
        }
        // Without a compiler there is no shim.
        set(cache.folder(), 0o777);
        let nobody = OsStr::new("/nowhere/mpicc");
        let error = load_by(Flavor::OpenMpi, &cache, nobody).err().expect("no compiler");
        let error = error.to_string();
        assert!(error.contains("may be written") && error.contains("/nowhere/mpicc"), "{error}");
    }
}
