//! Starts the processes of a job.

use std::{
    io,
    process::{Command, Stdio},
};

use consort_fabric::Rank;
use consort_native::Launcher;
use rustix::{fs::OFlags, process::Pid};

use crate::{
    launch::Launch,
    output::{Source, Stream},
    system,
};

/// A process that has been started.
pub(crate) struct Started {
    pub(crate) rank: Rank,
    pub(crate) process: Pid,
}

/// Starts all, and returns them with what they write.
///
/// # Errors
/// When one cannot be started, by its program's name.
pub(crate) fn start(
    launch: &Launch,
    launcher: &Launcher,
) -> io::Result<(Vec<Started>, Vec<Source>)> {
    let (mut all, mut sources) = (Vec::new(), Vec::new());
    for rank in (0..launch.pes).map(Rank) {
        let (name, value) = launcher.variable(rank);
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .env(name, value)
            .env("CONSORT_RANK", rank.to_string())
            .env("CONSORT_SIZE", launch.pes.to_string())
            .stdin(if rank == Rank(0) { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        system::prepare(&mut command, launcher.descriptor());
        let mut child = command.spawn().map_err(|error| {
            let program = launch.program.to_string_lossy();
            io::Error::new(error.kind(), format!("cannot start `{program}`: {error}"))
        })?;
        let out = child.stdout.take().map(|out| Box::new(out) as Box<dyn Stream>);
        let error = child.stderr.take().map(|error| Box::new(error) as Box<dyn Stream>);
        for (is_error, stream) in [(false, out), (true, error)] {
            let Some(stream) = stream else { continue };
            let flags = rustix::fs::fcntl_getfl(&stream)?;
            rustix::fs::fcntl_setfl(&stream, flags | OFlags::NONBLOCK)?;
            sources.push(Source::new(rank, is_error, stream));
        }
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let process = process.ok_or(io::ErrorKind::InvalidData)?;
        all.push(Started { rank, process });
    }
    Ok((all, sources))
}
