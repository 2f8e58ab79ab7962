//! Cores with coherent caches: the cost of a line depends on its state and its distance.
//!
//! The costs of a line are those of David, Guerraoui and Trigonakis 2013, Table 2. The rest of the
//! model builds on them:
//!
//! - A flag has its own line. Stores to flags follow the thread's earlier accesses, one after the
//!   other, while the thread continues. A thread that polls the flag must load it again.
//! - Bulk data is read and written line by line. For lines in the thread's own caches, the time
//!   follows from the bandwidth of copying and combining. Accesses to other lines overlap, up to a
//!   number of lines and a number of bytes of work. A thread starts its next operation before the
//!   last accesses are complete. Reading a flag that is already set is such an access too, because
//!   its branch is predicted.
//! - Transfers between caches and from memory queue for the hub, if there is one. Lines from memory
//!   also queue for their memory controller. Transfers of one line follow each other.
//! - Threads that share a core take turns at their work: calls, copying and combining.
//!
//! A thread enters a queue when it arrives there, never before. The constants below, and those in
//! `lines` and `window`, are assumptions; no table has them.

mod lines;
#[cfg(test)]
mod tests;
mod window;

use std::cell::{Cell, RefCell};

use consort_fabric::{Capabilities, Rank};

use self::{
    lines::{Found, Id, Lines},
    window::{Limits, Pace, Window},
};
use super::{Effects, Site, Where};
use crate::{
    account::Cause,
    engine::{Time, picoseconds},
    machines::{AtomicOp, Coherent as Machine, Layout, State},
};

/// Assumption: the overhead of a call, in cycles: finding its plan and numbering its messages.
pub(crate) const CALL_CYCLES: f64 = 20.0;
/// Assumption: the overhead of each operation on data, in cycles: computing addresses and starting
/// a loop.
const OPERATION_CYCLES: f64 = 10.0;
/// Bytes of data in a line of a message.
const PAYLOAD_BYTES: usize = consort_fabric::LINE_PAYLOAD_BYTES;
/// The lines that a thread works on before it is another thread's turn on its core.
const TURN_LINES: usize = 8;
/// Reading a flag counts as this many bytes of work.
const FLAG_BYTES: f64 = 8.0;

/// A resource that serves one request after the other.
#[derive(Default)]
struct Server {
    free: Cell<Time>,
}

impl Server {
    /// Serves a request that arrives now and takes `time`. Returns how long it waits before that.
    fn take(&self, now: Time, time: Time) -> Time {
        let begins = now.max(self.free.get());
        self.free.set(begins + time);
        begins - now
    }
}

/// A word for atomic operations: the thread that changed it last, and the transfers of its line.
#[derive(Default)]
struct Word {
    last: Cell<u32>,
    line: Server,
}

/// The costs of coherent caches.
pub(crate) struct Coherent {
    machine: Machine,
    limits: Limits,
    /// Whether a thread does nothing until its load is complete.
    in_order: bool,
    contention: bool,
    lines: RefCell<Lines>,
    windows: Vec<Window>,
    words: Vec<Word>,
    threads_per_core: u32,
    /// The shared core of each group of threads, if several threads share a core.
    cores: Vec<Server>,
    hub: Option<Server>,
    controllers: Vec<Server>,
    packages: u32,
}

/// A pass over memory.
#[derive(Clone, Copy)]
struct Pass {
    from: Where,
    /// The second operand, if the pass combines.
    left: Option<Where>,
    to: Where,
    bytes: usize,
}

impl Coherent {
    pub(crate) fn new(machine: &Machine, pes: u32, effects: Effects) -> Self {
        let (packages, threads_per_core) = match machine.layout {
            Layout::Packages { packages, threads_per_core, .. } => (packages, threads_per_core),
            Layout::Mesh { .. } => (1, 1),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few lines")]
        let lines = machine.lines_in_flight.max(1.0) as usize;
        let servers = |count: u32| (0..count).map(|_| Server::default()).collect();
        let cores = if threads_per_core > 1 { pes.div_ceil(threads_per_core) } else { 0 };
        Self {
            limits: Limits { lines, bytes: machine.reorder_bytes.unwrap_or(f64::INFINITY) },
            in_order: lines == 1,
            contention: effects.contention,
            lines: RefCell::new(Lines::new(machine, threads_per_core, pes)),
            windows: (0..pes).map(|_| Window::default()).collect(),
            words: (0..pes).map(|_| Word::default()).collect(),
            threads_per_core,
            cores: servers(cores),
            hub: machine.hub_ns.map(|_| Server::default()),
            controllers: servers(machine.memory.controllers),
            packages,
            machine: machine.clone(),
        }
    }

    /// Returns when all accesses that a PE has started are complete.
    pub(crate) fn settled(&self, pe: u32) -> Time {
        self.windows[pe as usize].done()
    }

    pub(super) fn capabilities(&self, pes: u32) -> Capabilities {
        Capabilities {
            inbox_channels: 1 << 20,
            scratch_bytes: 64 << 10,
            buffer_bytes: 64 << 10,
            exposes: true,
            buffered: true,
            pairwise_bytes: consort_fabric::PAIRWISE_BYTES,
            counts: true,
            vendor: consort_fabric::Vendor::NONE,
            nodes: self.machine.layout.dies(pes),
            levels: self.machine.layout.levels(pes),
        }
    }

    fn window(&self, site: Site<'_>) -> &Window {
        &self.windows[site.me as usize]
    }

    fn cycles(&self, cycles: f64) -> Time {
        picoseconds(cycles / self.machine.ghz)
    }

    fn load(&self, me: u32, holder: u32, state: State) -> Time {
        picoseconds(self.machine.load_ns(state, self.machine.distance(me, holder)))
    }

    fn store(&self, me: u32, holder: u32, state: State) -> Time {
        picoseconds(self.machine.store_ns(state, self.machine.distance(me, holder)))
    }

    fn wait(&self, server: &Server, now: Time, time: f64) -> Time {
        if self.contention { server.take(now, picoseconds(time)) } else { 0 }
    }

    /// Returns the memory controller of the line's home.
    fn controller(&self, id: Id) -> &Server {
        let count = self.machine.memory.controllers;
        let each = (count / self.packages).max(1);
        let threads = self.machine.threads();
        let package = id.home() * self.packages / threads;
        &self.controllers[((package * each + id.index() % each) % count) as usize]
    }

    /// Makes an access to a line, depending on where it was found, and spends the time that the
    /// thread waits.
    async fn access(&self, pace: &mut Pace<'_>, found: Found, id: Id, writes: bool) {
        let (me, machine) = (pace.site.me, &self.machine);
        let cost = |holder, state| {
            if writes { self.store(me, holder, state) } else { self.load(me, holder, state) }
        };
        let (cause, time) = match found {
            // The time of copying and combining includes this.
            Found::Own => return,
            Found::At(holder, state) => (Cause::OnChip, cost(holder, state)),
            Found::Memory => (Cause::OffChip, cost(id.home(), State::Invalid)),
        };
        pace.site.account.transfers(1);
        let window = self.window(pace.site);
        window.admit(pace, self.limits);
        let mut queued = 0;
        if self.contention {
            pace.settle().await;
            let serve = picoseconds(machine.line_serve_ns);
            queued = self.lines.borrow_mut().serve(id, pace.front, serve);
            if let Some(hub) = &self.hub {
                queued += self.wait(hub, pace.front, machine.hub_ns.unwrap_or(0.0));
            }
            if found == Found::Memory {
                let service_ns = machine.line_bytes as f64 / machine.memory.gbps;
                queued += self.wait(self.controller(id), pace.front, service_ns);
            }
        }
        window.launch(pace.front, cause, time, queued);
        if self.in_order {
            window.admit(pace, Limits { lines: 0, bytes: 0.0 });
        }
    }

    /// Computes on this many bytes.
    async fn compute(&self, pace: &mut Pace<'_>, bytes: usize, gbps: f64) {
        self.work(pace, picoseconds(bytes as f64 / gbps)).await;
    }

    /// Works for a time, taking turns with the other threads of the core.
    async fn work(&self, pace: &mut Pace<'_>, time: Time) {
        if let Some(core) = self.cores.get((pace.site.me / self.threads_per_core) as usize)
            && self.contention
        {
            pace.settle().await;
            pace.spend(Cause::Contention, core.take(pace.front, time));
        }
        pace.spend(Cause::Compute, time);
    }

    async fn pass(&self, site: Site<'_>, pass: Pass) -> Time {
        let Pass { from, left, to, bytes } = pass;
        let (machine, window) = (&self.machine, self.window(site));
        let line_bytes = machine.line_bytes;
        let gbps = if left.is_some() { machine.combine_gbps } else { machine.copy_gbps };
        let mut pace = Pace::new(site);
        self.work(&mut pace, self.cycles(OPERATION_CYCLES)).await;
        let count =
            if bytes == 0 { 0 } else { (from.at % line_bytes + bytes).div_ceil(line_bytes) };
        let mut uncomputed = 0;
        for index in 0..count {
            let reads = [Some(from), left].into_iter().flatten();
            for at in reads {
                let id = Id::new(at, line_bytes, index);
                let found = self.lines.borrow_mut().read(site.me, id);
                self.access(&mut pace, found, id, false).await;
            }
            let id = Id::new(to, line_bytes, index);
            let found = self.lines.borrow_mut().write(site.me, id);
            self.access(&mut pace, found, id, true).await;
            let worked = line_bytes.min(bytes - (index * line_bytes).min(bytes));
            window.work(worked as f64);
            uncomputed += worked;
            let is_turn = self.cores.is_empty() || (index + 1).is_multiple_of(TURN_LINES);
            if is_turn || index + 1 == count {
                self.compute(&mut pace, std::mem::take(&mut uncomputed), gbps).await;
            }
        }
        pace.settle().await;
        window.done().max(pace.front)
    }

    pub(super) async fn begin(&self, site: Site<'_>) {
        let mut pace = Pace::new(site);
        self.work(&mut pace, self.cycles(CALL_CYCLES)).await;
        pace.settle().await;
    }

    pub(super) async fn transfer(
        &self,
        site: Site<'_>,
        from: Where,
        to: Where,
        bytes: usize,
    ) -> Time {
        self.pass(site, Pass { from, left: None, to, bytes }).await
    }

    /// Reads two memories and writes their combination, in one pass.
    pub(super) async fn get_combine(
        &self,
        site: Site<'_>,
        from: Where,
        left: Where,
        to: Where,
        bytes: usize,
    ) {
        self.pass(site, Pass { from, left: Some(left), to, bytes }).await;
    }

    pub(super) async fn combine(&self, site: Site<'_>, bytes: usize) {
        let mut pace = Pace::new(site);
        self.compute(&mut pace, bytes, self.machine.combine_gbps).await;
        pace.settle().await;
    }

    pub(super) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        let mut pace = Pace::new(site);
        site.account.transfers(1);
        // The receiver has read the flag's line since it was last set.
        let time = self.store(site.me, to.0, State::Shared);
        let seen = self.window(site).store(&mut pace, time);
        pace.settle().await;
        seen
    }

    pub(super) async fn observe(&self, site: Site<'_>, since: Time, from: Option<Rank>) {
        site.account.transfers(1);
        let from = from.unwrap_or(Rank(site.me));
        let (window, mut pace) = (self.window(site), Pace::new(site));
        let time = self.load(site.me, from.0, State::Modified);
        let waited = site.engine.now() > since;
        window.admit(&mut pace, self.limits);
        window.launch(pace.front, Cause::Flags, time, 0);
        window.work(FLAG_BYTES);
        if waited || self.in_order {
            window.admit(&mut pace, Limits { lines: 0, bytes: 0.0 });
        }
        pace.settle().await;
    }

    pub(super) async fn send(&self, site: Site<'_>, to: Rank, from: Where, bytes: usize) -> Time {
        let mut pace = Pace::new(site);
        let lines = bytes.div_ceil(PAYLOAD_BYTES).max(1);
        site.account.transfers(lines);
        let time = self.store(site.me, to.0, State::Shared);
        let window = self.window(site);
        for index in 0..lines {
            let id = Id::new(from, self.machine.line_bytes, index * PAYLOAD_BYTES / 64);
            let found = self.lines.borrow_mut().read(site.me, id);
            self.access(&mut pace, found, id, false).await;
            let bytes = PAYLOAD_BYTES.min(bytes - index * PAYLOAD_BYTES);
            self.compute(&mut pace, bytes, self.machine.copy_gbps).await;
        }
        pace.settle().await;
        // A message of one line is like a flag. The stores of a longer one overlap.
        let (mut queued, more) = (0, lines as Time - 1);
        if let Some(hub) = self.hub.as_ref().filter(|_| more > 0) {
            let time_ns = self.machine.hub_ns.unwrap_or(0.0) * lines as f64;
            queued = self.wait(hub, pace.front, time_ns);
        }
        let overlapped = more * time / self.limits.lines as Time;
        let seen = window.store(&mut pace, queued + time + overlapped);
        pace.settle().await;
        seen
    }

    pub(super) async fn receive(
        &self,
        site: Site<'_>,
        since: Time,
        from: Rank,
        to: Where,
        bytes: usize,
    ) -> Time {
        self.observe(site, since, Some(from)).await;
        let (window, mut pace) = (self.window(site), Pace::new(site));
        let time = self.load(site.me, from.0, State::Modified);
        for index in 0..bytes.div_ceil(PAYLOAD_BYTES) {
            if index > 0 {
                site.account.transfers(1);
                window.admit(&mut pace, self.limits);
                window.launch(pace.front, Cause::OnChip, time, 0);
            }
            let id = Id::new(to, self.machine.line_bytes, index);
            let found = self.lines.borrow_mut().write(site.me, id);
            self.access(&mut pace, found, id, true).await;
            let bytes = PAYLOAD_BYTES.min(bytes - index * PAYLOAD_BYTES);
            window.work(bytes as f64);
            self.compute(&mut pace, bytes, self.machine.copy_gbps).await;
        }
        pace.settle().await;
        pace.front
    }

    pub(super) async fn handed_over(&self, _: Site<'_>, _: Time) {}

    pub(super) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        let window = self.window(site);
        let before = window.done().max(window.stored());
        site.engine.sleep_until(before).await;
        let word = &self.words[at.index()];
        let last = word.last.replace(site.me);
        site.account.transfers(usize::from(last != site.me));
        let distance = self.machine.distance(site.me, last);
        let time_ns = self.machine.atomic_ns(AtomicOp::FetchAdd, State::Modified, distance);
        let queued = self.wait(&word.line, site.engine.now(), self.machine.line_serve_ns);
        site.spend(Cause::Contention, queued).await;
        site.spend(Cause::Flags, picoseconds(time_ns)).await;
    }
}
