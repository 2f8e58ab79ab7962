//! The folder that stores shims, and which of them may be loaded.
//!
//! A shim's name consists of its MPI's flavour and hashes of its source and of its compiler's path,
//! so MPIs do not share shims. A shim file is put into the folder atomically, and ends with a seal:
//! a truncated file has none.
//!
//! Anyone can know the name and compute the seal. So a shim is loaded only if no other user can
//! have written it. `resolve_trusted` checks that, and returns a path that no other user can change
//! afterwards.

use std::{
    fs::{self, Permissions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{self, Path, PathBuf},
};

use consort_fabric::{
    environment::variable,
    files::{self, Untrusted, resolve_trusted},
};
use etcetera::BaseStrategy;
use tempfile::TempDir;

use super::shim_error::ShimError;
use crate::environment::Flavor;

/// The shim's source.
pub(crate) const SOURCE: &str = include_str!("shim.c");

/// The environment variable that names the folder for compiled shims.
pub(crate) const CACHE: &str = "CONSORT_CACHE";

/// The folder of shims.
#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns how the names of a flavour's shims begin.
fn beginning(flavor: Flavor) -> String {
    format!("mpi-{}-{:016x}-", flavor.name(), hash((SOURCE, env!("CARGO_PKG_VERSION"))))
}

/// Builds temporary folders that no one else may enter, regardless of the user's umask.
pub(crate) fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o700));
    builder
}

/// Returns the seal of a file with this content.
fn seal(content: &[u8]) -> [u8; 8] {
    hash(content).to_le_bytes()
}

/// Returns the resolved path of a shim that is whole and that no other user can have written.
fn usable(shim: &Path) -> Result<Option<PathBuf>, ShimError> {
    let unreadable = |error| ShimError::Unreadable { path: shim.to_owned(), error };
    let resolved = match resolve_trusted(shim) {
        Ok(resolved) => resolved,
        Err(error) if error.is_missing() => return Ok(None),
        Err(Untrusted::Unknown { path, error }) => {
            return Err(ShimError::Unreadable { path, error });
        }
        Err(untrusted) => return Err(untrusted.into()),
    };
    let content = files::read(&resolved).map_err(unreadable)?;
    let is_whole = content.split_last_chunk().is_some_and(|(content, end)| seal(content) == *end);
    Ok(is_whole.then_some(resolved))
}

impl Cache {
    /// Returns the folder that `CONSORT_CACHE` names, or the user's.
    pub(crate) fn here() -> Result<Self, ShimError> {
        if let Some(folder) = variable(CACHE) {
            let folder = PathBuf::from(folder);
            let at = Self::at(&folder);
            return at.map_err(|error| Self(folder).unwritable(error));
        }
        let base = etcetera::choose_base_strategy()
            .map_err(|error| Self("~/.cache".into()).unwritable(io::Error::other(error)))?;
        Ok(Self(base.cache_dir().join("consort")))
    }

    /// Uses this folder. The path is made absolute, because the loader searches for bare names.
    pub(crate) fn at(folder: &Path) -> io::Result<Self> {
        path::absolute(folder).map(Self)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    fn unwritable(&self, error: io::Error) -> ShimError {
        ShimError::Unwritable { path: self.0.clone(), error, setting: CACHE }
    }

    /// Returns the path of the shim for a compiler.
    fn file(&self, flavor: Flavor, compiler: &Path) -> PathBuf {
        self.0.join(format!("{}{:016x}.so", beginning(flavor), hash(compiler)))
    }

    /// Returns the stored shim for an MPI, if there is one: that of `compiler`, or the newest if
    /// there is no compiler.
    ///
    /// # Errors
    /// When it cannot be read, or another user can have written it.
    pub(crate) fn kept(
        &self,
        flavor: Flavor,
        compiler: Option<&Path>,
    ) -> Result<Option<PathBuf>, ShimError> {
        match compiler {
            Some(compiler) => usable(&self.file(flavor, compiler)),
            None => self.newest(flavor),
        }
    }

    /// Returns the newest usable shim of a flavour.
    ///
    /// # Errors
    /// When no shim is usable, and there is one that only this error makes unusable.
    fn newest(&self, flavor: Flavor) -> Result<Option<PathBuf>, ShimError> {
        let unreadable = |error| ShimError::Unreadable { path: self.0.clone(), error };
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let (mut newest, mut refused) = (None, None);
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            if !entry.file_name().to_str().is_some_and(|it| it.starts_with(&beginning(flavor))) {
                continue;
            }
            match usable(&entry.path()) {
                Ok(Some(path)) => {
                    let modified = path.metadata().and_then(|about| about.modified());
                    newest = newest.max(Some((modified.map_err(unreadable)?, path)));
                }
                Ok(None) => {}
                Err(error) => refused = Some(error),
            }
        }
        match (newest, refused) {
            (None, Some(error)) => Err(error),
            (newest, _) => Ok(newest.map(|(_, path)| path)),
        }
    }

    /// Creates a private folder in the cache, to compile in.
    ///
    /// # Errors
    /// When it cannot be created, or other users could change the contents of the cache.
    pub(crate) fn workplace(&self) -> Result<TempDir, ShimError> {
        let no_cache = |error| self.unwritable(error);
        files::create_folders(&self.0).map_err(no_cache)?;
        resolve_trusted(&self.0)?;
        private().tempdir_in(&self.0).map_err(no_cache)
    }

    /// Stores a compiled shim in the cache, and returns its path.
    ///
    /// # Errors
    /// When it cannot be stored, or another user's file is in its place.
    pub(crate) fn keep(
        &self,
        shim: &Path,
        flavor: Flavor,
        compiler: &Path,
    ) -> Result<PathBuf, ShimError> {
        let no_cache = |error| self.unwritable(error);
        let path = self.file(flavor, compiler);
        match resolve_trusted(&path) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        let seal_and_move = || {
            // A new file of this process, in a folder that only it may write.
            let content = fs::read(shim)?;
            let mut file = fs::OpenOptions::new().append(true).open(shim)?;
            file.write_all(&seal(&content))?;
            // The linker obeys the user's umask, which may let others write.
            let mode = file.metadata()?.permissions().mode();
            file.set_permissions(Permissions::from_mode(mode & !0o022))?;
            fs::rename(shim, &path)
        };
        seal_and_move().map_err(no_cache)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    /// Creates a cache that no one else may write, and its folder.
    fn cache() -> (TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().canonicalize().unwrap()).unwrap();
        (folder, cache)
    }

    /// Stores a library as the shim of a compiler.
    fn keep(cache: &Cache, compiler: &str) -> PathBuf {
        let made = cache.folder().join("made");
        fs::write(&made, "a library").unwrap();
        cache.keep(&made, Flavor::Mpich, Path::new(compiler)).unwrap()
    }

    fn kept(cache: &Cache, compiler: &str) -> Result<Option<PathBuf>, String> {
        let kept = cache.kept(Flavor::Mpich, Some(Path::new(compiler)));
        kept.map_err(|error| error.to_string())
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn mpis_do_not_share_a_shim() {
        let [one, other] = ["/one/bin/mpicc", "/other/bin/mpicc"].map(Path::new);
        let cache = Cache::at(Path::new("/cache")).unwrap();
        let file = |flavor, compiler| cache.file(flavor, compiler);
        assert_eq!(file(Flavor::Mpich, one), file(Flavor::Mpich, one));
        assert_ne!(file(Flavor::Mpich, one), file(Flavor::Mpich, other));
        assert_ne!(file(Flavor::Mpich, one), file(Flavor::OpenMpi, one));
    }

    #[test]
    fn without_a_compiler_the_newest_shim_is_used() {
        let (_folder, cache) = cache();
        let newest = |flavor| cache.kept(flavor, None).unwrap();
        assert_eq!(newest(Flavor::Mpich), None);
        let shim = keep(&cache, "/bin/mpicc");
        assert_eq!(newest(Flavor::Mpich), Some(shim));
        assert_eq!(newest(Flavor::OpenMpi), None);
        let nowhere = Cache::at(&cache.folder().join("nowhere")).unwrap();
        assert_eq!(nowhere.kept(Flavor::Mpich, None).unwrap(), None);
    }

    #[test]
    fn a_shim_that_has_lost_a_part_is_not_used() {
        let (_folder, cache) = cache();
        let [shim, other] = ["/bin/mpicc", "/bin/mpicc-2"].map(|at| keep(&cache, at));
        assert_eq!(kept(&cache, "/bin/mpicc"), Ok(Some(shim.clone())));
        let whole = fs::read(&shim).unwrap();
        for bytes in 0..whole.len() {
            fs::write(&shim, &whole[..bytes]).unwrap();
            assert_eq!(kept(&cache, "/bin/mpicc"), Ok(None), "{bytes}");
        }
        fs::write(&shim, vec![0; whole.len()]).unwrap();
        assert_eq!(kept(&cache, "/bin/mpicc"), Ok(None));
        assert_eq!(cache.kept(Flavor::Mpich, None).unwrap(), Some(other));
    }

    #[test]
    fn shim_writable_by_others_is_refused() {
        let (_folder, cache) = cache();
        let shim = keep(&cache, "/bin/mpicc");
        let refused = |part: &str| {
            for compiler in [Some(Path::new("/bin/mpicc")), None] {
                let error = cache.kept(Flavor::Mpich, compiler).unwrap_err();
                assert!(matches!(error, ShimError::Untrusted(_)), "{error}");
                assert!(error.to_string().contains(part), "`{part}` in {error}");
            }
        };
        set(&shim, 0o775);
        refused("may be written by other users");
        set(&shim, 0o755);
        for mode in [0o777, 0o770] {
            set(cache.folder(), mode);
            refused("may be written by other users");
            assert!(matches!(cache.workplace(), Err(ShimError::Untrusted(_))));
        }
        // Like /tmp: each file belongs to its owner.
        set(cache.folder(), 0o1777);
        assert_eq!(kept(&cache, "/bin/mpicc"), Ok(Some(shim.clone())));
        // Through a link that others could replace.
        let open = cache.folder().join("open");
        fs::create_dir(&open).unwrap();
        symlink(cache.folder(), open.join("link")).unwrap();
        set(&open, 0o777);
        let linked = Cache::at(&open.join("link")).unwrap();
        assert!(kept(&linked, "/bin/mpicc").unwrap_err().contains("open may be written"));
        // Only root can change the owner of a file.
        if rustix::process::geteuid().is_root() {
            chown(&shim, Some(65534), None).unwrap();
            refused("belongs to user 65534");
            let made = cache.folder().join("made");
            fs::write(&made, "a library").unwrap();
            let replaced = cache.keep(&made, Flavor::Mpich, Path::new("/bin/mpicc"));
            assert!(matches!(replaced, Err(ShimError::Untrusted(_))), "{replaced:?}");
        }
    }

    #[test]
    fn others_cannot_write_to_the_cache() {
        let (_folder, cache) = cache();
        let inner = Cache::at(&cache.folder().join("a/b")).unwrap();
        let work = inner.workplace().unwrap();
        assert_eq!(fs::metadata(work.path()).unwrap().permissions().mode() & 0o077, 0);
        let made = cache.folder().join("made");
        fs::write(&made, "a library").unwrap();
        set(&made, 0o777);
        let shim = inner.keep(&made, Flavor::Mpich, Path::new("/bin/mpicc")).unwrap();
        for path in [&cache.folder().join("a"), inner.folder(), &shim] {
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{}", path.display());
        }
    }
}
