//! An installed MPI library: the paths of its parts, and the options of its launcher.
//!
//! An MPI library from a Python package needs environment variables, which the user sets by
//! activating it. Here the user need not do that: this module sets the variables for the commands
//! that it runs.

use std::{
    env,
    path::{self, Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    time::Duration,
};

use anyhow::{Context, Result};
use consort_mpi::{Launcher, intel_root};

use crate::peers::commands::{CompiledProgram, PATIENCE, find_program, output};

/// A library that compiles and starts programs.
pub(super) struct Mpi {
    /// The absolute path; it remains a link if it was given as one.
    mpirun: PathBuf,
    mpicc: PathBuf,
    launcher: Launcher,
}

impl Mpi {
    /// # Errors
    /// If it does not exist, does not start, or has no compiler.
    pub(super) fn find(mpirun: &Path, stop: &AtomicBool) -> Result<Mpi> {
        let found = find_program(mpirun).with_context(|| {
            format!(
                "no {} found: install an MPI (by ci/install-mpis, or the package `openmpi` or \
                 `mpich` of the system or of Python), or name another mpirun",
                mpirun.display()
            )
        })?;
        let mpirun = path::absolute(&found).context("no current folder")?;
        let version = output(command(&mpirun, &mpirun).arg("--version"), PATIENCE, stop)?;
        let launcher = Launcher::of_version(&version);
        let mpicc = compiler(&mpirun).with_context(|| {
            format!(
                "no mpicc next to {} or in PATH: install the development files of this MPI (on \
                 Debian, its -dev package)",
                mpirun.display()
            )
        })?;
        Ok(Mpi { mpirun, mpicc, launcher })
    }

    /// Compiles a source.
    ///
    /// # Errors
    /// If the compiler fails, with its message.
    pub(super) fn compile(&self, source: &str, stop: &AtomicBool) -> Result<CompiledProgram> {
        let mut compile = command(&self.mpicc, &self.mpirun);
        compile.arg("-O2");
        if self.launcher == Launcher::Other
            && let Some(root) = intel_root(&self.mpicc)
        {
            compile.env("I_MPI_ROOT", root);
        }
        CompiledProgram::new(&mut compile, source, stop)
    }

    /// Runs `pes` processes of a program, each bound to a core or not, and returns the output.
    ///
    /// # Errors
    /// If it fails (with its message), or is killed after the limit or by `stop`.
    pub(super) fn run(
        &self,
        program: &CompiledProgram,
        (pes, bound): (u32, bool),
        arguments: &[String],
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<String> {
        let mut run = self.launcher(pes as usize, bound);
        output(run.arg(&program.path).args(arguments), limit, stop)
    }

    /// Returns the command that starts `processes` processes of the program named by its further
    /// arguments, bound to cores or not.
    pub(super) fn launcher(&self, processes: usize, bound: bool) -> Command {
        let mut run = command(&self.mpirun, &self.mpirun);
        run.args(here(self.launcher, bound)).arg("-n").arg(processes.to_string());
        run
    }
}

/// Returns a launcher's options for processes on the hosts that it selects itself, bound to cores
/// or not.
fn here(launcher: Launcher, bound: bool) -> Vec<&'static str> {
    let cores = if bound { "core" } else { "none" };
    match launcher {
        // Without these options, it refuses to run as root or with more processes than cores. It
        // decides whether processes share cores by the cores of the machine, not by those that it
        // may use.
        Launcher::OpenMpi => {
            let mut arguments = vec!["--allow-run-as-root", "--oversubscribe", "--bind-to", cores];
            if !bound {
                arguments.extend(["--mca", "mpi_yield_when_idle", "1"]);
            }
            arguments
        }
        Launcher::Hydra => vec!["-bind-to", cores],
        Launcher::Other => Vec::new(),
    }
}

/// Returns a command of an MPI, which finds its own parts before those of other MPIs in `PATH`.
/// Intel's `mpirun` is a script that looks for them there, unless it was activated.
fn command(program: &Path, mpirun: &Path) -> Command {
    let folder = mpirun.parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    // A folder with a colon in its name cannot be in PATH.
    if let Ok(path) = env::join_paths(folder.into_iter().chain(env::split_paths(&path))) {
        command.env("PATH", path);
    }
    // Open MPI does not start without a home directory, which services and containers may lack.
    if env::var_os("HOME").is_none() {
        command.env("HOME", env::temp_dir());
    }
    command
}

/// Returns the `mpicc` in the folder of `mpirun` or of its link's target, or else in `PATH`.
fn compiler(mpirun: &Path) -> Option<PathBuf> {
    let linked = mpirun.canonicalize().ok();
    let candidates = [Some(mpirun), linked.as_deref()];
    let mut candidates =
        candidates.into_iter().flatten().map(|mpirun| mpirun.with_file_name("mpicc"));
    candidates.find(|mpicc| mpicc.is_file()).or_else(|| find_program(Path::new("mpicc")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn launchers_get_their_options() {
        assert_eq!(here(Launcher::Hydra, true), ["-bind-to", "core"]);
        assert!(here(Launcher::OpenMpi, true).ends_with(&["--bind-to", "core"]));
        assert!(here(Launcher::OpenMpi, false).ends_with(&["mpi_yield_when_idle", "1"]));
    }

    #[test]
    fn folder_of_mpirun_comes_first_in_path() {
        let mpirun = Path::new("/an/mpi/bin/mpirun");
        let command = command(mpirun, mpirun);
        let (_, path) = command.get_envs().find(|(name, _)| *name == "PATH").unwrap();
        let first = env::split_paths(path.unwrap()).next();
        assert_eq!(first.as_deref(), mpirun.parent());
    }

    #[test]
    fn compiler_next_to_mpirun_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        let (mpirun, mpicc) = (folder.path().join("mpirun"), folder.path().join("mpicc"));
        fs::write(&mpirun, "").unwrap();
        assert_ne!(compiler(&mpirun), Some(mpicc.clone()));
        fs::write(&mpicc, "").unwrap();
        assert_eq!(compiler(&mpirun), Some(mpicc));
    }
}
