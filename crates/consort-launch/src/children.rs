//! Ends whatever has been started: the processes, and those that they have left behind.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use consort_native::End;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

use crate::system::send;

/// How long it takes at most to end what is left.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets this process inherit those whose parents end.
pub(crate) fn inherit() {
    // Old systems do not know it; then what a killed process has started may go on.
    let _ = set_child_subreaper(Some(getpid()));
}

/// How a process has ended.
pub(crate) fn end_of(status: WaitStatus) -> End {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => End::Exited(byte(status)),
        (None, signal) => End::Killed(byte(signal.unwrap_or(0))),
    }
}

/// A process of this one that has ended since the last call, if there is one. Of any process
/// group: a program may have one of its own.
pub(crate) fn next_ended() -> Option<(Pid, End)> {
    let (process, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((process, end_of(status)))
}

/// Kills this process's children, and theirs, but those that are spared.
pub(crate) fn kill_all(spared: &[Pid]) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        while next_ended().is_some() {}
        // Who has lost its parent by then is among them.
        let mut left = children();
        left.retain(|child| !spared.contains(child));
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|child| send(child, libc::SIGKILL));
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process.
pub(crate) fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get().to_string();
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // After the name, which is in brackets and may contain anything: the state, the parent.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(&own)
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}
