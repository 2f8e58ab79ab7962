//! Measures a program's calls, for `consort profile` and for traces.
//!
//! If `CONSORT_PROFILE` names a folder, or `CONSORT_TRACE` a file, a plan measures each of its
//! calls: it runs the call with an executor that reads the clock before and after each wait.
//! Without these variables, the plans do not measure, so a call takes no additional instruction.
//!
//! Each PE replaces its file in the folder and appends its events to the trace: at its first call,
//! from time to time, and at the job's end, even if the job fails. Writing takes about 1 % of the
//! time, but a PE writes at least every 0.1 s. If a process is killed, at most the calls of its
//! last 0.1 s are missing.

use std::{
    cell::Cell,
    collections::VecDeque,
    future::Future,
    io,
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    pin::Pin,
    process,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use consort_fabric::{
    CallSpec, Candidate, Op, Rank, TraceEvent, TraceThread, TraceValue, environment::variable,
    files,
};
use consort_machine::{ProcessToken, system::clock::now_ns};
use consort_native::{CallView, Config, Endpoint, HeapError, Operands, Site, StartedCall, Waits};
use consort_tuner::{CallProfile, Origin, PeProfile};

use super::{
    plans::{Drivable, Ready, fail_on_panic},
    trace_file::TraceFile,
};
use crate::{fabric::Fabric, warn::warn};

/// The environment variable that names the folder of profiles.
const PROFILE: &str = "CONSORT_PROFILE";
/// The environment variable that names the file of the trace.
const TRACE: &str = "CONSORT_TRACE";
/// The most calls of a PE in a trace: some 200 MB of text.
const MOST_EVENTS: u64 = 1 << 20;
/// A PE with this many events writes them.
const MOST_PENDING: usize = 1 << 14;
/// The first number of the threads in a trace that show started calls, which overlap others.
const STARTED: u32 = 1 << 20;
/// The time between two writes, as a multiple of the duration of a write.
const TIMES_BETWEEN_WRITES: u64 = 100;
/// The longest time between two writes. A write may seem long because another thread had the core.
const LONGEST_BETWEEN_WRITES_NS: u64 = 100_000_000;

/// The profile of a job: of the PEs that run in this process.
#[derive(Debug)]
pub(crate) struct Profiler {
    job: Arc<ProfiledJob>,
    process: ProcessToken,
    pes: Mutex<Vec<Arc<PeProfiler>>>,
}

/// The job, for the profiles of its PEs.
#[derive(Debug)]
struct ProfiledJob {
    folder: Option<PathBuf>,
    trace: Option<TraceFile>,
    /// Its number among the jobs of the process. It is the same in all processes of a job.
    number: u64,
    /// Differs from that of other jobs of a profiled program, and is the same in all processes of
    /// one job that a launcher has started on one machine.
    id: String,
    fabric: Fabric,
    pes: u32,
    begun_ns: u64,
}

impl ProfiledJob {
    fn new(folder: Option<PathBuf>, trace: Option<TraceFile>, fabric: Fabric, pes: u32) -> Self {
        static OF_THREADS: AtomicU64 = AtomicU64::new(0);
        static OF_PROCESSES: AtomicU64 = AtomicU64::new(0);
        let (jobs, process) = match fabric {
            Fabric::Threads => (&OF_THREADS, process::id()),
            _ => (&OF_PROCESSES, parent_id()),
        };
        // Relaxed: the numbers need only differ.
        let number = jobs.fetch_add(1, Relaxed);
        let id = format!("{process}.{number}");
        Self { folder, trace, number, id, fabric, pes, begun_ns: now_ns() }
    }
}

/// Returns the folder for profiles, if the environment names one.
fn folder_of_environment(warns: bool) -> Option<PathBuf> {
    let folder = PathBuf::from(variable(PROFILE)?);
    if folder.is_dir() {
        return Some(folder);
    }
    if warns {
        warn_once(&format!(
            "{PROFILE}: {} is not a folder: use `consort profile`",
            folder.display()
        ));
    }
    None
}

/// Returns the trace, if the environment names one. The first job of a program replaces an earlier
/// trace. In a job of processes, the process that `warns` replaces it.
fn trace_of_environment(warns: bool) -> Option<TraceFile> {
    static HAS_TRACE: AtomicBool = AtomicBool::new(false);
    let path = PathBuf::from(variable(TRACE)?);
    // Relaxed: publishes no other data.
    let is_new = warns && !HAS_TRACE.swap(true, Relaxed);
    let opened = TraceFile::open(path.clone(), is_new);
    opened.inspect_err(|error| warn_of_trace(&path, error)).ok()
}

impl Profiler {
    /// Returns the profile of a job, if the environment asks for one or for a trace. Warns if they
    /// cannot be written and this process `warns` for the job.
    pub(crate) fn of_environment(fabric: Fabric, pes: u32, warns: bool) -> Option<Arc<Self>> {
        let (folder, trace) = (folder_of_environment(warns), trace_of_environment(warns));
        if folder.is_none() && trace.is_none() {
            return None;
        }
        let job = Arc::new(ProfiledJob::new(folder, trace, fabric, pes));
        let process = ProcessToken::current();
        Some(Arc::new(Self { job, process, pes: Mutex::default() }))
    }

    /// Returns the profile of a PE.
    pub(crate) fn of_pe(&self, endpoint: &Endpoint) -> Arc<PeProfiler> {
        let rank = endpoint.rank_in_world();
        let mut pes = self.pes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pes.iter().find(|pe| pe.rank == rank) {
            return Arc::clone(known);
        }
        let Config { name, names_places, .. } = endpoint.job().config();
        let pe = Arc::new(PeProfiler {
            job: Arc::clone(&self.job),
            name: name.clone(),
            names_sites: *names_places,
            rank,
            calls: Mutex::default(),
        });
        pes.push(Arc::clone(&pe));
        pe
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return; // the calls belong to the parent of this forked child
        }
        for pe in self.pes.get_mut().unwrap_or_else(PoisonError::into_inner) {
            pe.write(&mut pe.calls(), Some(now_ns()));
        }
    }
}

/// Warns once of calls that are missing: on standard error if the program subscribes to no events,
/// because the user has asked for the calls.
fn warn_once(text: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: it publishes no other data.
    if !SAID.swap(true, Relaxed) {
        warn(text);
    }
}

fn warn_of_trace(path: &Path, error: &io::Error) {
    warn_once(&format!("{TRACE}: {} is not written: {error}", path.display()));
}

/// The calls that are made by one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) call: CallSpec,
    pub(crate) candidate: Candidate,
    pub(crate) origin: Option<Origin>,
}

/// The profile of one PE.
#[derive(Debug)]
pub(crate) struct PeProfiler {
    job: Arc<ProfiledJob>,
    name: String,
    /// Whether the sites of calls are places in the program, and not in another library.
    names_sites: bool,
    rank: Rank,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    kinds: Vec<Kind>,
    /// The rows in the order of their keys.
    rows: Vec<Row>,
    /// When the last call ended.
    until_ns: u64,
    waits: Waits,
    /// The part of the time of `waits` that was in blocking calls.
    waits_in_calls: Duration,
    /// The calls that are not in the trace yet.
    events: Vec<Event>,
    /// The number of calls in the trace and in `events`.
    event_count: u64,
    /// When to write the next time.
    write_ns: u64,
}

/// A call, for the trace.
#[derive(Debug)]
struct Event {
    kind: usize,
    site: Site,
    times: Times,
}

/// The calls of one kind from one site.
#[derive(Debug)]
struct Row {
    kind: usize,
    site: Site,
    count: u64,
    ns: u64,
    waiting_ns: u64,
    longest_ns: u64,
}

impl Row {
    /// Returns the kind of the calls, and the address of their site.
    fn key(&self) -> (usize, usize) {
        (self.kind, std::ptr::from_ref(self.site).addr())
    }
}

/// The times of one call.
#[derive(Clone, Copy, Debug)]
struct Times {
    begun_ns: u64,
    ended_ns: u64,
    waiting_ns: u64,
}

impl Times {
    fn ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

impl PeProfiler {
    /// Returns a plan that measures its calls.
    pub(crate) fn profiled(
        self: Arc<Self>,
        kind: Kind,
        ready: Arc<dyn Drivable>,
    ) -> Arc<dyn Ready> {
        let kinds = &mut self.calls().kinds;
        let known = kinds.iter().position(|known| *known == kind);
        let kind = known.unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        Arc::new(Profiled { ready, pe: Arc::clone(&self), kind, starting: Mutex::default() })
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Writes the profile if it is time for that.
    fn note(&self, kind: usize, site: Site, times: Times, waits: Option<(Waits, Duration)>) {
        let mut calls = self.calls();
        let new = Row { kind, site, count: 0, ns: 0, waiting_ns: 0, longest_ns: 0 };
        let at = calls.rows.binary_search_by_key(&new.key(), Row::key).unwrap_or_else(|at| {
            calls.rows.insert(at, new);
            at
        });
        let row = &mut calls.rows[at];
        let ns = times.ns();
        row.count += 1;
        row.ns += ns;
        row.waiting_ns += times.waiting_ns;
        row.longest_ns = row.longest_ns.max(ns);
        calls.until_ns = calls.until_ns.max(times.ended_ns);
        if let Some((waits, before)) = waits {
            calls.waits_in_calls += waits.time.saturating_sub(before);
            calls.waits = waits;
        }
        if self.job.trace.is_some() {
            calls.event_count += 1;
            match calls.event_count {
                ..=MOST_EVENTS => calls.events.push(Event { kind, site, times }),
                _ => warn_once(&format!("{TRACE}: PE {} has too many calls for it", self.rank)),
            }
        }
        if times.ended_ns >= calls.write_ns || calls.events.len() >= MOST_PENDING {
            self.write(&mut calls, None);
            let now_ns = now_ns();
            let took_ns = now_ns.saturating_sub(times.ended_ns);
            let between_ns = TIMES_BETWEEN_WRITES.saturating_mul(took_ns);
            calls.write_ns = now_ns + between_ns.min(LONGEST_BETWEEN_WRITES_NS);
        }
    }

    /// Writes the profile and the trace of the calls so far. `ended_ns` says when the job ended.
    fn write(&self, calls: &mut Calls, ended_ns: Option<u64>) {
        let ProfiledJob { folder, trace, id, .. } = &*self.job;
        if let Some(folder) = folder {
            let path = folder.join(format!("{id}-{}.toml", self.rank));
            let text = self.profile(calls, ended_ns).text();
            if let Err(error) = files::replace(&path, text.as_bytes(), 0) {
                warn_once(&format!("{PROFILE}: cannot write {}: {error}", path.display()));
            }
        }
        if let Some(trace) = trace
            && !calls.events.is_empty()
            && let Err(error) = trace.append(&self.events(calls))
        {
            warn_of_trace(trace.path(), &error);
        }
        calls.events.clear();
    }

    fn place(&self, site: Site) -> String {
        if self.names_sites { format!("{}:{}", site.file(), site.line()) } else { String::new() }
    }

    /// Returns the events that are not in the trace yet.
    fn events(&self, calls: &Calls) -> Vec<String> {
        let (process, rank) = (self.job.number, self.rank);
        let mut events = Vec::new();
        if calls.event_count == calls.events.len() as u64 {
            let named = |thread, name: &str| TraceThread { process, thread, name }.to_string();
            events.push(named(rank.0, &format!("PE {rank}")));
            events.push(named(STARTED + rank.0, &format!("PE {rank}, started calls")));
        }
        events.extend(calls.events.iter().map(|Event { kind, site, times }| {
            let Kind { name, call, candidate, .. } = &calls.kinds[*kind];
            let (at, algorithm) = (self.place(site), candidate.to_string());
            let arguments = [
                ("at", TraceValue::Text(&at)),
                ("algorithm", TraceValue::Text(&algorithm)),
                ("waiting_ns", TraceValue::Number(times.waiting_ns)),
            ];
            let thread = if call.nonblocking { STARTED + rank.0 } else { rank.0 };
            let (begun_ps, took_ps) = (1000 * times.begun_ns, 1000 * times.ns());
            let arguments = &arguments;
            TraceEvent { name, process, thread, begun_ps, took_ps, arguments }.to_string()
        }));
        events
    }

    /// Returns the profile of the calls so far.
    fn profile(&self, calls: &Calls, ended_ns: Option<u64>) -> PeProfile {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let of_row = |row: &Row| {
            let Row { kind, site, count, ns, waiting_ns, longest_ns } = *row;
            let Kind { name, call, candidate, origin } = calls.kinds[kind].clone();
            let (site, algorithm) = (self.place(site), candidate);
            CallProfile {
                name,
                site,
                query: call.query(),
                algorithm,
                origin,
                is_blocking: !call.nonblocking,
                count,
                ns,
                waiting_ns,
                longest_ns,
            }
        };
        let (job, waits) = (&*self.job, calls.waits);
        PeProfile {
            job: job.id.clone(),
            name: self.name.clone(),
            fabric: job.fabric.to_string(),
            pes: job.pes,
            rank: self.rank.0,
            begun_ns: job.begun_ns,
            until_ns: ended_ns.unwrap_or(calls.until_ns),
            has_ended: ended_ns.is_some(),
            paused: waits.paused,
            polls: waits.polls,
            yields: waits.yields,
            sleeps: waits.sleeps,
            yielding_ns: ns(waits.yielding),
            sleeping_ns: ns(waits.sleeping),
            waiting_elsewhere_ns: ns(waits.time.saturating_sub(calls.waits_in_calls)),
            calls: calls.rows.iter().map(of_row).collect(),
        }
    }
}

/// A plan whose calls are measured.
struct Profiled {
    ready: Arc<dyn Drivable>,
    pe: Arc<PeProfiler>,
    kind: usize,
    /// When and where calls were started that no operation drives yet, in order.
    starting: Mutex<VecDeque<(u64, Site)>>,
}

impl Profiled {
    fn starting(&self) -> MutexGuard<'_, VecDeque<(u64, Site)>> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ready for Profiled {
    fn call(
        &self,
        endpoint: &Endpoint,
        synchronized: &Cell<bool>,
        operands: &Operands<'_>,
        site: Site,
    ) -> Op {
        let (begun_ns, waiting_ns) = (now_ns(), Cell::new(0));
        let before = endpoint.waits().time;
        // SAFETY: only the future below drives the call, to its end.
        #[expect(unsafe_code, reason = "begins a call")]
        let call = unsafe { self.ready.enter(endpoint, synchronized, operands, site) };
        let done = fail_on_panic(endpoint, || {
            endpoint.block_on_timed(&call, self.ready.drive(&call), &waiting_ns)
        });
        let times = Times { begun_ns, ended_ns: now_ns(), waiting_ns: waiting_ns.get() };
        self.pe.note(self.kind, site, times, Some((endpoint.waits(), before)));
        done
    }

    fn begin(&self, endpoint: &Endpoint, site: Site) -> Result<StartedCall, HeapError> {
        let begun_ns = now_ns();
        let started = self.ready.begin(endpoint, site)?;
        self.starting().push_back((begun_ns, site));
        Ok(started)
    }

    fn drive<'c>(&'c self, call: &'c CallView<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        let started = self.starting().pop_front();
        let algorithm = self.ready.drive(call);
        Box::pin(async move {
            let done = algorithm.await;
            if let Some((begun_ns, site)) = started {
                let times = Times { begun_ns, ended_ns: now_ns(), waiting_ns: 0 };
                self.pe.note(self.kind, site, times, None);
            }
            done
        })
    }

    fn candidate(&self) -> &Candidate {
        self.ready.candidate()
    }

    fn may_replace_source(&self) -> bool {
        self.ready.may_replace_source()
    }
}
