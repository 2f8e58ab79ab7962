//! Records a program's calls, for `consort tune --record`.
//!
//! `CONSORT_RECORD` names a new file, or one with recorded calls. Then the plans of the first PE of
//! each team count the team's calls. The last PE appends the counts when it ends, even if the job
//! fails. Other PEs make the same calls, so their plans do not count. Of the calls that the library
//! makes for itself, only the barrier at the end of an allocation of symmetric memory counts.

use std::{
    cell::Cell,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use consort_fabric::{CallSpec, Candidate, Op, Query, environment::variable};
use consort_machine::ProcessToken;
use consort_native::{CallView, Endpoint, HeapError, Operands, Site, StartedCall};
use consort_tuner::{Mix, MixError};

use super::plans::Ready;
use crate::warn::warn;

/// The environment variable that names the file.
const RECORD: &str = "CONSORT_RECORD";

/// The calls of a job.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    process: ProcessToken,
    counts: Mutex<Vec<(Query, Arc<AtomicU64>)>>,
}

impl Recorder {
    /// Returns the recorder of a job, if the environment asks for one. Warns if the file cannot
    /// take calls and this process `warns` for the job.
    pub(crate) fn of_environment(warns: bool) -> Option<Arc<Self>> {
        let path = PathBuf::from(variable(RECORD)?);
        if let Err(error) = Mix::open(&path) {
            if warns {
                warn_once(&error);
            }
            return None;
        }
        Some(Arc::new(Self { path, process: ProcessToken::current(), counts: Mutex::default() }))
    }

    /// Returns a plan for `call` that counts the calls made by it.
    pub(crate) fn counted(&self, call: &CallSpec, ready: Arc<dyn Ready>) -> Arc<dyn Ready> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let query = Mix::recorded_as(&call.query());
        let known = counts.iter().find(|(known, _)| *known == query);
        let calls = known.map(|(_, calls)| Arc::clone(calls)).unwrap_or_else(|| {
            let calls = Arc::default();
            counts.push((query, Arc::clone(&calls)));
            calls
        });
        Arc::new(Counted { ready, calls })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return; // the calls belong to the parent of this forked child
        }
        let mut mix = Mix::default();
        for (query, calls) in self.counts.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // Relaxed: the PEs that count have ended.
            let calls = calls.load(Relaxed);
            if calls > 0 {
                mix.add(query, calls);
            }
        }
        if let Err(error) = mix.append(&self.path) {
            warn_once(&error);
        }
    }
}

/// Warns once that calls are not recorded: on standard error if the program subscribes to no
/// events, because the user has asked for the file.
fn warn_once(error: &MixError) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: it publishes no other data.
    if !SAID.swap(true, Relaxed) {
        warn(&format!("{RECORD}: {error}; calls are not recorded"));
    }
}

/// A plan whose calls are counted.
struct Counted {
    ready: Arc<dyn Ready>,
    calls: Arc<AtomicU64>,
}

impl Ready for Counted {
    fn call(
        &self,
        endpoint: &Endpoint,
        synchronized: &Cell<bool>,
        operands: &Operands<'_>,
        site: Site,
    ) -> Op {
        // Relaxed: the count is read when the PEs have ended.
        self.calls.fetch_add(1, Relaxed);
        self.ready.call(endpoint, synchronized, operands, site)
    }

    fn begin(&self, endpoint: &Endpoint, site: Site) -> Result<StartedCall, HeapError> {
        // Relaxed: as in `call`.
        self.calls.fetch_add(1, Relaxed);
        self.ready.begin(endpoint, site)
    }

    fn drive<'c>(&'c self, call: &'c CallView<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        self.ready.drive(call)
    }

    fn candidate(&self) -> &Candidate {
        self.ready.candidate()
    }

    fn may_replace_source(&self) -> bool {
        self.ready.may_replace_source()
    }
}
