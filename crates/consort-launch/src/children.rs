//! Ends everything that was started: the processes, and those that they have left behind.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use consort_native::ProcessEnd;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

use crate::system::send;

/// How long [`kill_all`] tries to end the remaining processes.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Makes this process inherit processes whose parents end.
pub(crate) fn inherit() {
    // Old systems do not support it; descendants of a killed process may then continue.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Returns how a process has ended.
pub(crate) fn end_of(status: WaitStatus) -> ProcessEnd {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => ProcessEnd::Exited(byte(status)),
        (None, signal) => ProcessEnd::Killed(byte(signal.unwrap_or(0))),
    }
}

/// Returns a child that has ended since the last call, if there is one. It may be in any process
/// group, because a program may create one.
pub(crate) fn next_ended() -> Option<(Pid, ProcessEnd)> {
    let (process, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((process, end_of(status)))
}

/// Kills this process's children and their descendants, except those in `spared`.
pub(crate) fn kill_all(spared: &[Pid]) {
    let begun = Instant::now();
    while begun.elapsed() < KILL_LIMIT {
        while next_ended().is_some() {}
        // By now this includes processes that have lost their parent.
        let mut left = children();
        left.retain(|child| !spared.contains(child));
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|child| send(child, libc::SIGKILL));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the children of this process.
pub(crate) fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get().to_string();
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // After the name, which is in parentheses and may contain anything: state and parent.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(&own)
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}
