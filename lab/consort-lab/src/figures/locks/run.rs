//! Runs an object under a lock or a delegation scheme on a simulated machine, and reports its speed
//! and the parts of its time.
//!
//! Each thread applies operations in a loop. Between two operations it runs an empty loop of a
//! random length. Threads start at different times. The first part of the time is not counted.

use std::{cell::Cell, sync::atomic::Ordering::Relaxed};

use anyhow::Result;
use consort_fabric::splitmix64;
use consort_machine::{Line, Machine as _};
use consort_sim::{
    PrivateSections, SimulatedThread, Tally, ThreadSimulation, ThreadsOutcome, machines::Machine,
};
use consort_sync::{
    delegation::{
        Backoff, CcSynch, HSynch, HybComb, Locked, MpServer, Scheme, ServerScheme, Service,
        ShmServer,
    },
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, TestAndSet, Ticket},
};

use super::{private::Private, test_and_set::PlainTestAndSet};

/// The measured time, in nanoseconds of virtual time.
pub(super) const MEASURED_NS: f64 = 400_000.0;
/// The time before it, which is not measured.
const WARM_UP_NS: f64 = 150_000.0;
/// A server that searches for its clients' backoff has a warm-up this many times as long.
const SEARCH: f64 = 16.0;
/// Threads start within this many cycles.
const BEGIN_CYCLES: u64 = 60_000;
/// The number of lines of the data: 64 words.
const DATA_LINES: usize = 8;
/// The number of words that a function call writes to the stack: the return address and two
/// registers.
const CALL_STORES: usize = 3;

/// The seeds for figures that depend on details of the schedule.
pub(super) const SEEDS: [u64; 3] = [0, 1, 2];

/// A way to execute critical sections.
#[derive(Clone, Debug)]
pub(super) enum Way {
    PlainTestAndSet,
    /// The library's, with backoff.
    TestAndSet,
    /// The library's default.
    Handoff,
    Ticket,
    Mcs,
    Clh,
    Cna,
    Hapax,
    HybLock,
    Shm(Slots),
    Mp,
    CcSynch(u64),
    /// Thread `n` is in group `n mod 8`.
    HSynch(u64),
    HybComb(u64),
    /// An atomic addition instead of a section.
    FetchAdd,
}

impl Way {
    /// Returns whether it finds its parameters while it runs.
    const fn searches(&self) -> bool {
        matches!(self, Self::Shm(Slots { tunes: true, .. }))
    }

    /// Returns whether servers execute the sections.
    pub(super) const fn is_served(&self) -> bool {
        matches!(self, Self::Shm(_) | Self::Mp)
    }
}

/// The slots of SHM-SERVER.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    pub(super) every_second: bool,
    pub(super) backoff: Option<u64>,
    /// Whether the server finds the backoff.
    pub(super) tunes: bool,
    pub(super) streams: bool,
    pub(super) shuffled: bool,
}

impl Slots {
    fn make(self, threads: usize) -> ShmServer {
        // One more than the number of threads: the last slot is shared.
        let slots = threads + 1;
        let mut server = ShmServer::new(slots);
        if self.every_second {
            server = server.with_every_second_line();
        }
        if self.tunes {
            server = server.with_backoff(Backoff::Tuned);
        } else if let Some(cycles) = self.backoff {
            server = server.with_backoff(Backoff::Every(cycles));
        }
        if self.streams {
            server = server.with_streaming();
        }
        if self.shuffled {
            let mut order: Vec<usize> = (0..slots).collect();
            let mut state = 1;
            for last in (1..slots).rev() {
                let drawn = splitmix64(&mut state) % (last as u64 + 1);
                order.swap(last, usize::try_from(drawn).unwrap_or(0));
            }
            server = server.with_order(&order);
        }
        server
    }
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) machine: &'static str,
    /// The hardware thread of each thread. The first one is that of the server, if there is one.
    pub(super) placement: Vec<u32>,
    pub(super) way: Way,
    /// The number of words that a section increments, one after the other, of 64.
    pub(super) increments: usize,
    /// The longest loop between two operations.
    pub(super) longest_loop: u64,
    /// Whether a section is called through a pointer instead of being selected by its number.
    pub(super) by_pointer: bool,
    /// The measured time, in nanoseconds of virtual time.
    pub(super) measured_ns: f64,
    /// The seed of the random lengths.
    pub(super) seed: u64,
    /// The sections, if only they access their data.
    pub(super) sections: Option<PrivateSections>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The tallies of the threads that apply operations.
    clients: Vec<Tally>,
    /// The tally of the thread with the least idle time.
    pub(super) servicing: Tally,
    measured_ns: f64,
    pub(super) mops: f64,
    /// The number of other threads' operations that a combiner executes in addition to its own.
    pub(super) combined: f64,
}

impl Point {
    /// Returns the operations of all threads.
    pub(super) fn operations(&self) -> u64 {
        self.clients.iter().map(|tally| tally.operations).sum()
    }

    /// Returns a count per operation.
    pub(super) fn each(&self, count: u64) -> f64 {
        count as f64 / self.operations() as f64
    }

    /// Returns the number of compare-exchanges per operation.
    pub(super) fn exchanges(&self) -> f64 {
        self.each(self.clients.iter().map(|tally| tally.exchanges).sum())
    }

    /// Returns the number of atomic instructions of all kinds per operation.
    pub(super) fn atomics(&self) -> f64 {
        self.each(self.clients.iter().map(|tally| tally.atomics).sum())
    }

    /// Returns the mean time of an operation, in nanoseconds.
    pub(super) fn latency_ns(&self) -> f64 {
        let all = self
            .clients
            .iter()
            .filter(|tally| tally.operations > 0)
            .map(|tally| tally.latency_ns() * tally.operations as f64);
        all.sum::<f64>() / self.operations() as f64
    }

    /// Returns the ratio of the largest to the smallest number of operations of a thread.
    pub(super) fn fairness(&self) -> f64 {
        let counts = self.clients.iter().map(|tally| tally.operations);
        counts.clone().max().unwrap_or(0) as f64 / counts.min().unwrap_or(0) as f64
    }

    /// Returns the share of its time for which the servicing thread stalled. Idle time is not
    /// included.
    pub(super) fn stalled(&self) -> f64 {
        self.servicing.all_stalled_ns() / (self.measured_ns - self.servicing.idle_ns())
    }

    /// Returns the remote references and the prefetched lines of the servicing thread, per
    /// operation.
    pub(super) fn remote(&self) -> [f64; 2] {
        [self.each(self.servicing.remote()), self.each(self.servicing.prefetched)]
    }
}

/// The data of a section.
#[derive(Default)]
#[repr(align(128))]
struct Data {
    words: [Line; DATA_LINES],
    stack: Line,
    increments: usize,
    by_pointer: bool,
    /// The number of executions, and of those by the thread that requested them.
    executed: Cell<[u64; 2]>,
}

impl<M: consort_machine::Machine> Service<M> for Data {
    /// Executes an operation of the thread with number `of`.
    async fn serve(&self, m: &M, _: u64, of: u64) -> u64 {
        let [all, own] = self.executed.get();
        self.executed.set([all + 1, own + u64::from(u64::from(m.thread().0) == of)]);
        for word in self.stack.iter().take(CALL_STORES).filter(|_| self.by_pointer) {
            m.store(word, 0, Relaxed).await;
        }
        let mut old = 0;
        for word in self.words.iter().flat_map(|line| line.iter()).cycle().take(self.increments) {
            old = m.load(word, Relaxed).await;
            m.store(word, old + 1, Relaxed).await;
        }
        old
    }
}

impl Data {
    /// Returns the number of executions for others per own execution. A combiner executes its own
    /// operation once.
    fn combined(&self) -> f64 {
        let [all, own] = self.executed.get();
        (all - own) as f64 / own as f64
    }
}

/// Aligns a value to a pair of lines.
#[repr(align(128))]
struct Aligned<T>(T);

/// An object that threads use under a scheme.
pub(super) trait Subject {
    /// Returns whether one scheme executes all code that accesses the object's data.
    fn is_private(&self) -> bool;

    /// Runs threads that apply operations.
    ///
    /// # Errors
    /// When the machine has no such hardware threads.
    fn apply<S: Scheme>(&self, setting: &Setting, scheme: impl Fn() -> S) -> Result<Point>;

    /// Runs the same, except that the first threads are servers. Their schemes have these `lines`.
    ///
    /// # Errors
    /// When the machine has no such hardware threads.
    fn serve<S: ServerScheme>(
        &self,
        setting: &Setting,
        scheme: impl Fn() -> S,
        lines: impl Fn(&S) -> &[Line],
    ) -> Result<Point>;
}

/// The words that a section increments.
struct Increments;

impl Subject for Increments {
    fn is_private(&self) -> bool {
        true
    }

    fn apply<S: Scheme>(&self, setting: &Setting, scheme: impl Fn() -> S) -> Result<Point> {
        let (scheme, data) = (Aligned(scheme()), setting.data());
        let outcome = setting.simulate(async |m: SimulatedThread| {
            if m.thread().0 == 0 {
                m.announce(&data.words);
            }
            let (local, me) = (S::Local::default(), u64::from(m.thread().0));
            setting
                .repeat(&m, async || {
                    let Ok(_) = scheme.0.apply(&m, &local, &data, 0, me).await;
                })
                .await;
        })?;
        Ok(Point { combined: data.combined(), ..setting.point(outcome, 0) })
    }

    fn serve<S: ServerScheme>(
        &self,
        setting: &Setting,
        scheme: impl Fn() -> S,
        lines: impl Fn(&S) -> &[Line],
    ) -> Result<Point> {
        let (scheme, data) = (Aligned(scheme()), setting.data());
        let outcome = setting.simulate(async |m: SimulatedThread| {
            if m.thread().0 == 0 {
                m.announce(&data.words);
                m.announce(lines(&scheme.0));
                let Ok(()) = scheme.0.run(&m, &data).await;
                return;
            }
            let (local, me) = (S::Local::default(), u64::from(m.thread().0));
            setting
                .repeat(&m, async || {
                    let Ok(_) = scheme.0.apply(&m, &local, &data, 0, me).await;
                })
                .await;
        })?;
        Ok(setting.point(outcome, 1))
    }
}

impl Setting {
    /// Runs sections that increment words.
    ///
    /// # Errors
    /// When the machine has no such hardware threads.
    pub(super) fn run(&self) -> Result<Point> {
        self.run_on(&Increments)
    }

    /// Runs threads that use an object.
    ///
    /// # Errors
    /// When the machine has no such hardware threads.
    pub(super) fn run_on(&self, subject: &impl Subject) -> Result<Point> {
        match self.way {
            Way::PlainTestAndSet => subject.apply(self, PlainTestAndSet::default),
            Way::TestAndSet => subject.apply(self, || Locked::with(TestAndSet::new())),
            Way::Handoff => subject.apply(self, || Locked::with(Handoff::new())),
            Way::Ticket => subject.apply(self, || Locked::with(Ticket::new())),
            Way::Mcs => subject.apply(self, || Locked::with(Mcs::new())),
            Way::Clh => subject.apply(self, || Locked::with(Clh::new())),
            Way::Cna => subject.apply(self, || Locked::with(Cna::new())),
            Way::Hapax => subject.apply(self, || Locked::with(Hapax::new())),
            Way::HybLock => subject.apply(self, || Locked::with(HybLock::new())),
            Way::CcSynch(most) => self.combine(subject, || CcSynch::new().with_max_ops(most)),
            Way::HybComb(most) => self.combine(subject, || HybComb::new().with_max_ops(most)),
            Way::HSynch(most) => {
                self.combine(subject, || HSynch::new(8, most, |thread| thread.0 as usize))
            }
            Way::Mp => self.serve(subject, MpServer::new, |_| &[]),
            Way::Shm(slots) => {
                self.serve(subject, || slots.make(self.placement.len()), ShmServer::lines)
            }
            Way::FetchAdd => self.add(),
        }
    }

    /// Returns the same setting with private sections, if the object's data is private.
    fn privately(&self, subject: &impl Subject) -> Option<(Self, PrivateSections)> {
        let sections = subject.is_private().then(PrivateSections::default)?;
        Some((Self { sections: Some(sections.clone()), ..self.clone() }, sections))
    }

    /// Runs threads that apply operations, which one of them executes.
    fn combine<S: Scheme>(&self, subject: &impl Subject, scheme: impl Fn() -> S) -> Result<Point> {
        let Some((setting, sections)) = self.privately(subject) else {
            return subject.apply(self, scheme);
        };
        subject.apply(&setting, || Private { scheme: scheme(), sections: sections.clone() })
    }

    /// Runs threads that apply operations, which servers execute.
    fn serve<S: ServerScheme>(
        &self,
        subject: &impl Subject,
        scheme: impl Fn() -> S,
        lines: impl Fn(&S) -> &[Line],
    ) -> Result<Point> {
        let Some((setting, sections)) = self.privately(subject) else {
            return subject.serve(self, scheme, lines);
        };
        let private = || Private { scheme: scheme(), sections: sections.clone() };
        subject.serve(&setting, private, |private| lines(&private.scheme))
    }

    fn data(&self) -> Data {
        let (increments, by_pointer) = (self.increments, self.by_pointer);
        Data { increments, by_pointer, ..Data::default() }
    }

    /// Runs threads that add to a word.
    fn add(&self) -> Result<Point> {
        let data = self.data();
        let outcome = self.simulate(async |m: SimulatedThread| {
            self.repeat(&m, async || {
                m.fetch_add(&data.words[0][0], 1, Relaxed).await;
            })
            .await;
        })?;
        Ok(self.point(outcome, 0))
    }

    /// Repeats a thread's operation for as long as the simulation lasts.
    pub(super) async fn repeat(&self, m: &SimulatedThread, operation: impl AsyncFn()) {
        m.pause(m.random(BEGIN_CYCLES)).await;
        loop {
            m.operation(operation()).await;
            m.spin(m.random(self.longest_loop + 1));
        }
    }

    pub(super) fn simulate(
        &self,
        program: impl AsyncFn(SimulatedThread),
    ) -> Result<ThreadsOutcome<()>> {
        let machine = Machine::find(self.machine)?;
        let simulation = ThreadSimulation::on(machine, 0).placed(self.placement.clone());
        let mut simulation = simulation.seed(self.seed);
        if let Some(sections) = &self.sections {
            simulation = simulation.with_sections(sections.clone());
        }
        let warm_up = WARM_UP_NS * if self.way.searches() { SEARCH } else { 1.0 };
        Ok(simulation.run_for(warm_up, self.measured_ns, program)?)
    }

    /// Returns the result of a simulation whose first threads are servers.
    pub(super) fn point(&self, outcome: ThreadsOutcome<()>, servers: usize) -> Point {
        let ThreadsOutcome { mut tallies, measured_ns, .. } = outcome;
        let busiest = (0..tallies.len())
            .min_by(|&a, &b| tallies[a].idle_ns().total_cmp(&tallies[b].idle_ns()));
        let servicing = tallies[if servers > 0 { 0 } else { busiest.unwrap_or(0) }];
        let clients = tallies.split_off(servers);
        let operations: u64 = clients.iter().map(|tally| tally.operations).sum();
        let mops = operations as f64 / measured_ns * 1e3;
        Point { clients, servicing, measured_ns, mops, combined: 0.0 }
    }
}
