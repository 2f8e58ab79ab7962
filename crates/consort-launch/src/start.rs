//! Starts the processes of a job.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use consort_fabric::{Rank, files::start_error};
use consort_machine::advice::of_call;
use consort_native::Launcher;
use rustix::{
    fs::OFlags,
    io::Errno,
    process::{Pid, Resource, Rlimit, getrlimit, setrlimit},
};

use crate::{
    launch::Launch,
    output::{Source, Stream},
    system::{self, OriginalSettings, Signals},
};

/// The number of files that the launcher itself keeps open or opens briefly.
const FILES: u64 = 32;

/// A process that has been started.
pub(crate) struct StartedProcess {
    pub(crate) rank: Rank,
    pub(crate) process: Pid,
}

/// Starts all processes; also returns their output streams.
///
/// # Errors
/// When one cannot be started; the error names its program.
pub(crate) fn start(
    launch: &Launch,
    launcher: &Launcher,
    signals: &Signals,
) -> io::Result<(Vec<StartedProcess>, Vec<Source>)> {
    let before = OriginalSettings { signals, files: allow_files(launch.pes)? };
    let (mut all, mut sources) = (Vec::new(), Vec::new());
    for rank in (0..launch.pes).map(Rank) {
        let (name, value) = launcher.variable(rank);
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .env(name, value)
            .envs(launch.variables.iter().map(|(name, value)| (name, value)))
            .env("CONSORT_RANK", rank.to_string())
            .env("CONSORT_SIZE", launch.pes.to_string())
            .stdin(if rank == Rank(0) { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        system::prepare(&mut command, launcher.descriptor(), &before);
        let mut child = command.spawn().map_err(|error| not_started(launch, &error))?;
        let out = child.stdout.take().map(|out| Box::new(out) as Box<dyn Stream>);
        let error = child.stderr.take().map(|error| Box::new(error) as Box<dyn Stream>);
        for (is_error, stream) in [(false, out), (true, error)] {
            let Some(stream) = stream else { continue };
            let of_fcntl =
                |error: Errno| of_call(&format!("fcntl of the output of PE {rank}"), &error.into());
            let flags = rustix::fs::fcntl_getfl(&stream).map_err(of_fcntl)?;
            rustix::fs::fcntl_setfl(&stream, flags | OFlags::NONBLOCK).map_err(of_fcntl)?;
            sources.push(Source::new(rank, is_error, stream));
        }
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let process = process.ok_or(io::ErrorKind::InvalidData)?;
        all.push(StartedProcess { rank, process });
    }
    Ok((all, sources))
}

/// Returns an error that says why a program could not be started.
fn not_started(launch: &Launch, error: &io::Error) -> io::Error {
    let program = launch.program.to_string_lossy();
    let why = start_error(Path::new(&launch.program), error);
    let mut text = format!("cannot start `{program}`: {why}");
    let is_name = !program.is_empty() && !program.contains('/');
    if error.kind() == io::ErrorKind::NotFound && is_name && Path::new(&launch.program).is_file() {
        text += &format!("; did you mean `./{program}`?");
    }
    io::Error::new(error.kind(), text)
}

/// Raises this process's limit on open files to what the PEs need, and returns the old limit. Each
/// PE needs two files, and one more if the PE is not the process that was started.
fn allow_files(pes: u32) -> io::Result<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let open = fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
    let (least, most) = (open + FILES + 2 * u64::from(pes), open + FILES + 3 * u64::from(pes));
    let may = before.maximum.unwrap_or(u64::MAX);
    if may < least {
        let text = format!(
            "{pes} PEs need {least} open files, but the limit is {may}: raise it, for example \
             with `ulimit -n {least}`, or start fewer PEs"
        );
        return Err(io::Error::other(text));
    }
    let now = before.current.unwrap_or(u64::MAX).max(most.min(may));
    if before.current.is_some_and(|before| before < now) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(now), ..before });
        let call = || format!("setrlimit of open files to {now}");
        raised.map_err(|error| of_call(&call(), &error.into()))?;
    }
    Ok(before)
}
