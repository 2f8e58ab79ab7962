//! Runs a program in the foreground of a command.

use std::{
    io::{self, PipeReader, Read as _},
    process::{Command, ExitStatus},
    thread,
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid},
};
use signal_hook::{
    SigId,
    consts::{SIGINT, SIGTERM},
    low_level::{pipe, unregister},
};

use crate::signals::stop_at;

/// The requests to terminate that this process gets, as bytes in a pipe, until it is dropped.
struct Requests(SigId);

impl Requests {
    /// Begins to collect them. The pipe ends when the result is dropped.
    fn collect() -> io::Result<(PipeReader, Self)> {
        let (reader, writer) = io::pipe()?;
        Ok((reader, Self(pipe::register(SIGTERM, writer)?)))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        unregister(self.0);
    }
}

/// Runs a program, and passes each request to terminate (SIGTERM) on to it. An interrupt reaches
/// the program by itself, because both have the same terminal; a second one ends this process.
/// After the program has ended, both signals set the flag of
/// [`stop_flag`](crate::signals::stop_flag).
///
/// # Errors
/// When the program cannot be started, or the system refuses a pipe or a signal handler.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    stop_at(&[SIGINT])?;
    // Before the program starts: a request must not end this process alone.
    let (mut pipe, requests) = Requests::collect()?;
    let mut child = command.spawn()?;
    let process = Pid::from_child(&child);
    thread::scope(|scope| {
        scope.spawn(move || {
            while pipe.read_exact(&mut [0]).is_ok() {
                // An error means that the program has ended.
                let _ = kill_process(process, Signal::TERM);
            }
        });
        // The status is taken later, so that the process number is not reused meanwhile.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let ended = retry_on_intr(|| waitid(WaitId::Pid(process), ended));
        drop(requests);
        ended
    })?;
    stop_at(&[SIGTERM])?;
    child.wait()
}
