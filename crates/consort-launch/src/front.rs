//! The front: the process between the shell and the launcher. It passes on signals and the exit
//! status, and ends all processes if the launcher is killed.

use std::io;

use consort_native::End;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal},
};

use crate::{
    children,
    launch::Launch,
    system::{self, Signals},
    watch,
};

/// Runs a job to its end, and returns the exit status.
///
/// # Errors
/// When its processes cannot be started.
pub(crate) fn run(launch: &Launch) -> io::Result<u8> {
    let mut signals = Signals::take()?;
    children::inherit();
    match system::fork(Signal::TERM)? {
        None => std::process::exit(i32::from(launcher(launch, &mut signals))),
        Some(launcher) => wait_for(launcher, &mut signals),
    }
}

/// What the launcher does; returns its exit status.
fn launcher(launch: &Launch, signals: &mut Signals) -> u8 {
    match watch::run(launch, signals) {
        Err(error) => {
            eprintln!("consort run: {error}");
            if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
        }
        Ok(outcome) => {
            if outcome.trouble.is_some() {
                eprintln!("consort run: {outcome}");
            }
            outcome.status
        }
    }
}

/// Waits for the launcher, and passes on the signals that come.
fn wait_for(launcher: Pid, signals: &mut Signals) -> io::Result<u8> {
    loop {
        let mut all = [PollFd::new(&*signals, PollFlags::IN)];
        match poll(&mut all, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(came) = signals.next() {
            if came.number != libc::SIGCHLD && !came.from_terminal {
                system::send(launcher, came.number);
            }
        }
        while let Ok(Some((process, end))) = children::next_ended() {
            if process != launcher {
                continue;
            }
            return match end {
                End::Exited(status) => Ok(status),
                _ => {
                    children::kill_all();
                    eprintln!("consort run: the launcher {end}; all PEs were killed");
                    Ok(128 + 9)
                }
            };
        }
    }
}
