//! Warns if some processes never begin: the others wait in the MPI without limit.
//!
//! A process may compute for a long time before its first job, so this is not an error. Only the
//! first and the last rank warn. That suffices: they are usually on different machines, or run
//! different programs, so one of them waits if the processes of one machine or program do not
//! begin.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use consort_machine::stay_loaded;

use crate::environment::MpiProcess;

/// How long a process waits before it warns.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// A wait that is watched, until it is dropped.
pub(crate) struct WatchedWait {
    _waits: Option<Sender<()>>,
}

impl WatchedWait {
    /// Watches how long this process waits for the others.
    pub(crate) fn wait(started: &MpiProcess) -> Self {
        let last = started.processes.saturating_sub(1);
        match started.rank {
            Some(rank) if last > 0 && (rank == 0 || rank == last) => {
                Self::after(WARN_AFTER, move || {
                    eprintln!(
                        "consort: process {rank} has waited for {} s for all {} processes to begin \
                         a job: do all run the same program?",
                        WARN_AFTER.as_secs(),
                        last + 1
                    );
                })
            }
            _ => Self { _waits: None },
        }
    }

    /// Calls `say` if the wait lasts longer than `time`.
    fn after(time: Duration, say: impl FnOnce() + Send + 'static) -> Self {
        let (waits, ended) = mpsc::channel();
        let watch = move || {
            if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                say();
            }
        };
        stay_loaded(); // the thread may outlive a plug-in that is unloaded
        // Without the thread there is no warning.
        let _ = thread::Builder::new().name("consort watch".to_owned()).spawn(watch);
        Self { _waits: Some(waits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_wait_is_reported() {
        let (said, heard) = mpsc::channel();
        let say = |text| {
            let said = said.clone();
            move || said.send(text).expect("somebody hears it")
        };
        drop(WatchedWait::after(Duration::from_secs(1000), say("short")));
        let _long = WatchedWait::after(Duration::ZERO, say("long"));
        drop(said);
        assert_eq!(heard.into_iter().collect::<Vec<_>>(), ["long"]);
    }
}
