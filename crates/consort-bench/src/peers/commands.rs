//! Commands of the system, such as compilers and launchers, which peers in C need.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{Read, Seek},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// How long a compiler, or a program that only tells its version, may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The program of this name in a folder of `PATH`.
pub(super) fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Runs a command and returns its output, if it succeeds within the limit. Past the limit it is
/// killed.
///
/// # Errors
/// When it does not start, fails, or is killed, with its message.
pub(super) fn output(command: &mut Command, limit: Duration) -> Result<String> {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
    // Files: a pipe would have to be read meanwhile, and what a killed program has started may hold
    // it open.
    let file = || tempfile::tempfile().context("no temporary file for a program's output");
    let (mut printed, mut complaint) = (file()?, file()?);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(complaint.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let Some(status) = status_within(&mut child, limit)? else {
        child
            .kill()
            .and_then(|()| child.wait())
            .with_context(|| format!("cannot end {program}"))?;
        bail!("{program} was killed: it did not end within {} s", limit.as_secs_f64());
    };
    if !status.success() {
        // Some launchers write error messages to their standard output.
        let [printed, complaint] = [content(&mut printed)?, content(&mut complaint)?];
        let why = if complaint.trim().is_empty() { printed } else { complaint };
        bail!("{program} failed ({status}):\n{}", why.trim());
    }
    content(&mut printed)
}

/// How a process ended; `None` if it has not within the limit. It is looked at ever more rarely,
/// since each look takes a core from it.
fn status_within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let (shortest, longest) = (Duration::from_micros(200), Duration::from_millis(50));
    let begun = Instant::now();
    loop {
        let status = child.try_wait().context("a program's end is unknown")?;
        let spent = begun.elapsed();
        if status.is_some() || spent >= limit {
            return Ok(status);
        }
        thread::sleep((spent / 4).clamp(shortest, longest).min(limit - spent));
    }
}

fn content(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).context("a program's output")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A program that was compiled here.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) path: PathBuf,
    /// The program's folder, which goes with it.
    _folder: TempDir,
}

impl Compiled {
    /// Compiles a source in C by this compiler and its options.
    ///
    /// # Errors
    /// When the compiler fails, with its message.
    pub(super) fn new(compiler: &mut Command, source: &str) -> Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder to compile in")?;
        let (file, path) = (folder.path().join("program.c"), folder.path().join("program"));
        fs::write(&file, source).context("cannot write the program")?;
        output(compiler.arg("-o").arg(&path).arg(file), PATIENCE)?;
        Ok(Self { path, _folder: folder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<String> {
        output(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn a_program_prints_fails_or_is_killed() {
        let long = Duration::from_secs(30);
        assert_eq!(shell("echo one; echo two >&2", long).unwrap(), "one\n");
        let why = |script, limit| shell(script, limit).unwrap_err().to_string();
        assert!(why("echo lost; echo why >&2; exit 3", long).ends_with("exit status: 3):\nwhy"));
        assert!(why("echo why; exit 3", long).ends_with("exit status: 3):\nwhy"));
        let begun = Instant::now();
        // The shell's child holds its files open after it.
        let killed = why("sleep 5; echo late", Duration::from_millis(300));
        assert_eq!(killed, "sh was killed: it did not end within 0.3 s");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
