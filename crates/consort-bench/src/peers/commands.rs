//! Commands of the system, such as compilers and launchers, which peers in C need.

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

/// How long a compiler, or a program that only tells its version, may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The time in which a program that is asked to end may end what it has started elsewhere, as MPI's
/// launchers do.
const FAREWELL: Duration = Duration::from_secs(1);
/// What the command's warnings begin with.
const WARNING: &str = "warning: ";

/// What a command has printed, to its standard output and error, and how it failed, if it did.
pub(super) struct Ended {
    pub(super) printed: String,
    complaint: String,
    pub(super) failure: Option<anyhow::Error>,
}

/// Runs a command and returns its output, if it succeeds within the limit. Past the limit, or once
/// `stop` is set, it is killed with all that it has started in its process group.
///
/// # Errors
/// When it does not start, fails, or is killed, with its message.
pub fn output(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<String> {
    let Ended { printed, failure, .. } = ended(command, limit, stop)?;
    failure.map_or(Ok(printed), Err)
}

/// As [`output`], of a launcher: what several of its processes complain of alike is said once.
/// Their warnings, in lines that begin as this command's own, are passed on if they succeed.
///
/// # Errors
/// As those of [`output`].
pub fn output_of_processes(
    command: &mut Command,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<String> {
    let Ended { printed, complaint, failure } = ended(command, limit, stop)?;
    if let Some(error) = failure {
        bail!(each_line_once(&error.to_string()));
    }
    for warning in each_line_once(&complaint).lines().filter_map(|it| it.strip_prefix(WARNING)) {
        tracing::warn!("{warning}");
    }
    Ok(printed)
}

/// A text without the lines that repeat an earlier one. Lines without words only part others, and
/// stay where they part any.
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

/// As [`output`], and what a command has printed that fails by itself.
///
/// # Errors
/// When it does not start, or is killed.
pub(super) fn ended(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<Ended> {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
    // Files: a pipe would have to be read meanwhile, and what a killed program has started may hold
    // it open.
    let file = || tempfile::tempfile().context("no temporary file for a program's output");
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
        // Some launchers write error messages to their standard output.
        let why = if complaint.trim().is_empty() { &printed } else { &complaint };
        anyhow!("{program} failed ({status}):\n{}", why.trim())
    });
    Ok(Ended { printed, complaint, failure })
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes no other data.
    stop.load(Relaxed)
}

/// Ends a process and its group: asks first, and kills those that are left.
fn end_group(child: &mut Child) -> Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process_group(group, Signal::TERM)?;
    let asked = Instant::now();
    // The number of the process is its own, and so is the group's, until its status is taken.
    let left = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(group), left)?.is_none() && asked.elapsed() < FAREWELL {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process_group(group, Signal::KILL)?;
    child.wait()?;
    Ok(())
}

/// How a process ended; `None` if it has not within the limit, or before `stop` was set. It is
/// looked at ever more rarely, since each look takes a core from it.
fn status_within(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Option<ExitStatus>> {
    let (shortest, longest) = (Duration::from_micros(200), Duration::from_millis(50));
    let begun = Instant::now();
    loop {
        let status = child.try_wait().context("a program's end is unknown")?;
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
pub(super) struct Compiled {
    pub(super) path: PathBuf,
    /// The program's folder, which goes with it.
    _folder: TempDir,
}

impl Compiled {
    /// Compiles a source in C by this compiler and its options.
    ///
    /// # Errors
    /// When the compiler fails, with its message, or is killed.
    pub(super) fn new(compiler: &mut Command, source: &str, stop: &AtomicBool) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.permissions(fs::Permissions::from_mode(0o700)).tempdir();
        let named = || format!("no folder to compile in below {}", env::temp_dir().display());
        let folder = folder.with_context(named)?;
        // Other users could put another program in its place.
        resolve_trusted(folder.path())
            .context("a program is not compiled where others may write: set TMPDIR")?;
        let (file, path) = (folder.path().join("program.c"), folder.path().join("program"));
        fs::write(&file, source).context("cannot write the program")?;
        output(compiler.arg("-o").arg(&path).arg(file), PATIENCE, stop)?;
        Ok(Self { path, _folder: folder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<String> {
        output(Command::new("sh").args(["-c", script]), limit, &AtomicBool::new(false))
    }

    /// Whether a process has ended, sooner or later.
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
    fn what_a_killed_program_has_started_ends_with_it() {
        let never = AtomicBool::new(false);
        for before in ["", "trap '' TERM;"] {
            let (pid, why) = with_child(before, Duration::from_secs(1), &never);
            assert!(why.ends_with("did not end within 1 s"), "{why}");
            assert!(ends(&pid), "{before}");
        }
    }

    #[test]
    fn an_interrupt_ends_a_program_and_what_it_has_started() {
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
    fn what_all_processes_complain_of_is_said_once() {
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
        // The shell's child holds its files open after it.
        let killed = why("sleep 5; echo late", Duration::from_millis(300));
        assert_eq!(killed, "sh was killed: it did not end within 0.3 s");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
