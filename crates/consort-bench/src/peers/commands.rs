//! Commands of the system, such as compilers and launchers, which peers in C need.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail};

/// The program of this name in a folder of `PATH`.
pub(super) fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Runs a command and returns its output, if it succeeds.
///
/// # Errors
/// When it does not start or fails, with its message.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).display().to_string();
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        // Some launchers write error messages to their standard output.
        let complaint = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
        bail!("{program} failed ({status}):\n{}", String::from_utf8_lossy(&complaint).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
