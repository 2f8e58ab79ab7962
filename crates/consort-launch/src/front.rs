//! The front: the process between the shell and the launcher. It passes on signals and the exit
//! status, and ends all processes that the launcher has left behind.

use std::io;

use consort_machine::advice::of_call;
use consort_native::ProcessEnd;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, WaitOptions, getpid, waitpid},
};

use crate::{
    children,
    launch::Launch,
    output::print_line,
    system::{self, Fork, Signals},
    watch,
};

/// Runs a job to its end, and returns the exit status.
///
/// # Errors
/// When its processes cannot be started.
pub(crate) fn run(launch: &Launch) -> io::Result<u8> {
    ensure_may_wait()?;
    let mut signals = Signals::take()?;
    children::inherit();
    // A process that became this program by `exec` may have had children before.
    let spared = children::children();
    match system::fork()? {
        Fork::Launcher { front } => {
            std::process::exit(i32::from(watch::run(launch, &mut signals, front)))
        }
        Fork::Front { launcher, held } => {
            let end = wait_for(launcher, &mut signals);
            drop(held);
            // Even if the launcher has ended by itself, since it may have failed.
            children::kill_all(&spared);
            match end? {
                ProcessEnd::Exited(status) => Ok(status),
                end => {
                    print_line(format_args!("the launcher {end}; all PEs were killed"));
                    Ok(128 + 9)
                }
            }
        }
    }
}

/// Fails if the system refuses the calls that wait for processes and their output.
fn ensure_may_wait() -> io::Result<()> {
    let polled = poll(&mut [], Some(&Timespec::default()));
    polled.map_err(|error| of_call("ppoll", &error.into()))?;
    match waitpid(Some(getpid()), WaitOptions::NOHANG) {
        // No process is its own child.
        Ok(_) | Err(Errno::CHILD) => Ok(()),
        Err(error) => Err(of_call("wait4", &error.into())),
    }
}

/// Waits for the launcher, and passes signals on to it. Returns how the launcher ended.
fn wait_for(launcher: Pid, signals: &mut Signals) -> io::Result<ProcessEnd> {
    loop {
        let mut all = [PollFd::new(&*signals, PollFlags::IN)];
        match poll(&mut all, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(of_call("poll", &error.into())),
        }
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD && !signal.from_terminal {
                system::send(launcher, signal.number);
                // Otherwise a stopped launcher would not receive the signal.
                system::send(launcher, libc::SIGCONT);
            }
        }
        while let Some((process, end)) = children::next_ended() {
            if process == launcher {
                return Ok(end);
            }
        }
    }
}
