//! Commands of the system, such as compilers and launchers, that peers in C need.

use std::{
    env,
    fs::{self, File},
    io::{Read, Seek},
    os::unix::{fs::PermissionsExt as _, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use consort_fabric::files::{resolve_trusted, start_error};
pub(super) use consort_mpi::find_program;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tempfile::TempDir;

/// The longest time for a compiler, or for a program that only prints its version.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The time in which a program that is asked to end may end what it has started elsewhere, as MPI
/// launchers do.
const FAREWELL: Duration = Duration::from_secs(1);
/// The prefix of the command's warnings.
const WARNING: &str = "warning: ";

/// The standard output and error of a command, and the reason if it failed.
pub(super) struct CommandOutput {
    pub(super) printed: String,
    complaint: String,
    pub(super) failure: Option<anyhow::Error>,
}

/// Runs a command and returns its output if it succeeds within the limit. After the limit, or once
/// `stop` is set, it is killed with everything that it has started in its process group.
///
/// # Errors
/// If it does not start, fails (with its message), or is killed.
pub fn output(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<String> {
    let CommandOutput { printed, failure, .. } = ended(command, limit, stop)?;
    failure.map_or(Ok(printed), Err)
}

/// As [`output`], for a launcher: a complaint that several of its processes share is reported once.
/// If they succeed, their warnings, in lines that begin like this command's warnings, are passed
/// on.
///
/// # Errors
/// As [`output`].
pub fn output_of_processes(
    command: &mut Command,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<String> {
    let CommandOutput { printed, complaint, failure } = ended(command, limit, stop)?;
    if let Some(error) = failure {
        bail!(each_line_once(&error.to_string()));
    }
    for warning in each_line_once(&complaint).lines().filter_map(|it| it.strip_prefix(WARNING)) {
        tracing::warn!("{warning}");
    }
    Ok(printed)
}

/// Removes the lines of a text that repeat an earlier one. Lines without words are separators, and
/// stay where they separate other lines.
fn each_line_once(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let has_words = line.contains(char::is_alphanumeric);
        let repeats = if has_words { lines.contains(&line) } else { lines.last() == Some(&line) };
        if !repeats {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// As [`output`], but also returns the output of a command that fails by itself.
///
/// # Errors
/// If it does not start, or is killed.
pub(super) fn ended(
    command: &mut Command,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<CommandOutput> {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
    // Files, because a pipe would have to be read at the same time, and processes started by a
    // killed program may keep it open.
    let file =
        || tempfile::tempfile().context("cannot create a temporary file for a program's output");
    let (mut printed, mut complaint) = (file()?, file()?);
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(complaint.try_clone()?)
        .spawn()
        .map_err(|error| {
            let why = start_error(Path::new(command.get_program()), &error);
            anyhow!("cannot start {}: {why}", command.get_program().display())
        })?;
    let Some(status) = status_within(&mut child, limit, stop)? else {
        end_group(&mut child).with_context(|| format!("cannot end {program}"))?;
        if is_set(stop) {
            bail!("{program} was killed by an interrupt");
        }
        bail!("{program} was killed: it did not end within {} s", limit.as_secs_f64());
    };
    let [printed, complaint] = [content(&mut printed)?, content(&mut complaint)?];
    let failure = (!status.success()).then(|| {
        // Some launchers write error messages to standard output.
        let why = if complaint.trim().is_empty() { &printed } else { &complaint };
        anyhow!("{program} failed ({status}):\n{}", why.trim())
    });
    Ok(CommandOutput { printed, complaint, failure })
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes no other data.
    stop.load(Relaxed)
}

/// Ends a process and its group: asks first, and kills the remaining ones.
fn end_group(child: &mut Child) -> Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process_group(group, Signal::TERM)?;
    let asked = Instant::now();
    // The process number, and the group's number, are not reused until the status is taken.
    let left = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(group), left)?.is_none() && asked.elapsed() < FAREWELL {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process_group(group, Signal::KILL)?;
    child.wait()?;
    Ok(())
}

/// Returns how a process ended; `None` if it has not ended within the limit, or before `stop` was
/// set. Looks at it less and less often, because each look takes a core from it.
fn status_within(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Option<ExitStatus>> {
    let (shortest, longest) = (Duration::from_micros(200), Duration::from_millis(50));
    let begun = Instant::now();
    loop {
        let status = child.try_wait().context("cannot wait for a program")?;
        let spent = begun.elapsed();
        if status.is_some() || spent >= limit || is_set(stop) {
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
pub(super) struct CompiledProgram {
    pub(super) path: PathBuf,
    /// The program's folder, which is removed with it.
    _folder: TempDir,
}

impl CompiledProgram {
    /// Compiles a C source with this compiler and its options.
    ///
    /// # Errors
    /// If the compiler fails (with its message) or is killed.
    pub(super) fn new(compiler: &mut Command, source: &str, stop: &AtomicBool) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.permissions(fs::Permissions::from_mode(0o700)).tempdir();
        let named =
            || format!("cannot create a folder to compile in, below {}", env::temp_dir().display());
        let folder = folder.with_context(named)?;
        // Otherwise, other users could replace the program.
        resolve_trusted(folder.path()).context(
            "other users could replace the compiled program: set TMPDIR to a folder that only \
                 you may write",
        )?;
        let (file, path) = (folder.path().join("program.c"), folder.path().join("program"));
        fs::write(&file, source).context("cannot write the program")?;
        // Without the folder, the same mistake has the same text each time.
        let within = format!("{}/", folder.path().display());
        output(compiler.arg("-o").arg(&path).arg(file), PATIENCE, stop)
            .map_err(|error| anyhow!(error.to_string().replace(&within, "")))?;
        Ok(Self { path, _folder: folder })
    }

    /// As [`CompiledProgram::new`], with the compiler of this name in `PATH`. `library` and
    /// `packages` say what the source needs, and which Debian packages contain that.
    ///
    /// # Errors
    /// As [`CompiledProgram::new`], and when the compiler is not installed.
    pub(super) fn by(
        compiler: &str,
        options: &[&str],
        source: &str,
        [library, packages]: [&str; 2],
        stop: &AtomicBool,
    ) -> Result<Self> {
        let advice = || format!("on Debian, install {packages}");
        let found = find_program(Path::new(compiler))
            .with_context(|| format!("no {compiler} in PATH: {}", advice()))?;
        Self::new(Command::new(found).args(options), source, stop).with_context(|| {
            format!("{compiler} cannot compile a program with {library} ({})", advice())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<String> {
        output(Command::new("sh").args(["-c", script]), limit, &AtomicBool::new(false))
    }

    /// Returns whether a process ends within a few seconds.
    fn ends(pid: &str) -> bool {
        let begun = Instant::now();
        let runs = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
        };
        while runs() && begun.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(10));
        }
        !runs()
    }

    /// Runs a script whose child outlasts the test; returns the child's number and the error.
    fn with_child(before: &str, limit: Duration, stop: &AtomicBool) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("{before} sleep 60 & echo $! > child; wait");
        let mut command = Command::new("sh");
        let killed = output(command.args(["-c", &script]).current_dir(&folder), limit, stop);
        let pid = fs::read_to_string(folder.path().join("child")).unwrap();
        (pid.trim().to_owned(), killed.unwrap_err().to_string())
    }

    #[test]
    fn killing_a_program_kills_its_children() {
        let never = AtomicBool::new(false);
        for before in ["", "trap '' TERM;"] {
            let (pid, why) = with_child(before, Duration::from_secs(1), &never);
            assert!(why.ends_with("did not end within 1 s"), "{why}");
            assert!(ends(&pid), "{before}");
        }
    }

    #[test]
    fn interrupt_ends_a_program_and_its_children() {
        let stop = AtomicBool::new(false);
        let (pid, why) = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_secs(1));
                // Relaxed: as in `is_set`.
                stop.store(true, Relaxed);
            });
            with_child("", Duration::from_secs(50), &stop)
        });
        assert_eq!(why, "sh was killed by an interrupt");
        assert!(ends(&pid));
    }

    #[test]
    fn error_of_all_processes_is_shown_once() {
        let text = "error: no heap\nerror: no heap \n-----\nOne failed.\n\n-----\nerror: no heap\n\
                    -----\nerror: no MPI";
        let once = "error: no heap\n-----\nOne failed.\n\n-----\nerror: no MPI";
        assert_eq!(each_line_once(text), once);
        let mut launcher = Command::new("sh");
        launcher.args(["-c", "for rank in 0 1 2; do echo error: no heap >&2; done; exit 3"]);
        let never = AtomicBool::new(false);
        let failed = output_of_processes(&mut launcher, Duration::from_secs(30), &never);
        assert_eq!(failed.unwrap_err().to_string().matches("no heap").count(), 1);
    }

    #[test]
    fn a_program_prints_fails_or_is_killed() {
        let long = Duration::from_secs(30);
        assert_eq!(shell("echo one; echo two >&2", long).unwrap(), "one\n");
        let why = |script, limit| shell(script, limit).unwrap_err().to_string();
        assert!(why("echo lost; echo why >&2; exit 3", long).ends_with("exit status: 3):\nwhy"));
        assert!(why("echo why; exit 3", long).ends_with("exit status: 3):\nwhy"));
        let begun = Instant::now();
        // The shell's child holds the shell's files open after its end.
        let killed = why("sleep 5; echo late", Duration::from_millis(300));
        assert_eq!(killed, "sh was killed: it did not end within 0.3 s");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
