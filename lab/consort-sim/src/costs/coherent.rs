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
//! - Threads that share a pipeline of a core take turns at their work: calls, copying, combining.
//!   If waiting threads poll, each thread gets one turn in n, where n threads share the pipeline.
//! - Accesses queue for a bank of the outermost cache, and transfers between packages for links, if
//!   the description has these.
//!
//! A thread enters a queue when it arrives there, never before. The constants below, and those in
//! `lines` and `window`, are assumptions; no table has them.

mod lines;
mod server;
mod sharing;
#[cfg(test)]
mod tests;
mod window;

use std::cell::{Cell, RefCell};

use consort_fabric::{Capabilities, Rank};

use self::{
    lines::{Found, Id, Lines},
    server::Server,
    sharing::{Banks, Cores, Links, Work},
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
/// Assumption: the instructions that set a flag, or that poll it once: an access, a comparison, a
/// branch and its delay slot. They count if waiting threads poll.
const FLAG_CYCLES: f64 = 4.0;
/// Bytes of data in a line of a message.
const PAYLOAD_BYTES: usize = consort_fabric::LINE_PAYLOAD_BYTES;
/// The lines that a thread works on before it is another thread's turn on its core.
const TURN_LINES: usize = 8;
/// Reading a flag counts as this many bytes of work.
const FLAG_BYTES: f64 = 8.0;

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
    /// The cores, if several threads share one.
    cores: Option<Cores>,
    banks: Option<Banks>,
    links: Option<Links>,
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
        Self {
            limits: Limits { lines, bytes: machine.reorder_bytes.unwrap_or(f64::INFINITY) },
            in_order: lines == 1,
            contention: effects.contention,
            lines: RefCell::new(Lines::new(machine, threads_per_core, pes)),
            windows: (0..pes).map(|_| Window::default()).collect(),
            words: (0..pes).map(|_| Word::default()).collect(),
            cores: Cores::new(machine, threads_per_core, pes).filter(|_| effects.contention),
            banks: Banks::new(machine, pes).filter(|_| effects.contention),
            links: Links::new(machine).filter(|_| effects.contention),
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
        if let Some(banks) = &self.banks {
            pace.settle().await;
            pace.spend(Cause::Contention, banks.take(me, id, pace.front, writes));
        }
        let (cause, time, from) = match found {
            // The time of copying and combining includes this.
            Found::Own => return,
            Found::At(holder, state) => (Cause::OnChip, cost(holder, state), holder),
            Found::Memory => (Cause::OffChip, cost(id.home(), State::Invalid), id.home()),
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
            if let Some(links) = &self.links {
                queued += links.take(from, me, id, pace.front);
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

    /// Copies this many bytes in the thread's caches.
    async fn copy(&self, pace: &mut Pace<'_>, bytes: usize) {
        let time = picoseconds(bytes as f64 / self.machine.copy_gbps);
        self.work(pace, time, Work::Copy(bytes)).await;
    }

    /// Combines this many bytes in the thread's caches.
    async fn combine_in_caches(&self, pace: &mut Pace<'_>, bytes: usize) {
        let time = picoseconds(bytes as f64 / self.machine.combine_gbps);
        self.work(pace, time, Work::Combine(bytes)).await;
    }

    /// Works for a time, taking turns with the other threads of the core.
    async fn work(&self, pace: &mut Pace<'_>, time: Time, work: Work) {
        if let Some(cores) = &self.cores {
            pace.settle().await;
            pace.spend(Cause::Contention, cores.take(pace.site.me, pace.front, time, work));
        }
        pace.spend(Cause::Compute, time);
    }

    /// Sets or polls a flag, if the core is shared with threads that poll.
    async fn touch_flag(&self, pace: &mut Pace<'_>) {
        if self.cores.as_ref().is_some_and(Cores::polls) {
            self.work(pace, self.cycles(FLAG_CYCLES), Work::Instructions).await;
        }
    }

    async fn pass(&self, site: Site<'_>, pass: Pass) -> Time {
        let Pass { from, left, to, bytes } = pass;
        let (line_bytes, window) = (self.machine.line_bytes, self.window(site));
        let mut pace = Pace::new(site);
        self.work(&mut pace, self.cycles(OPERATION_CYCLES), Work::Instructions).await;
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
            let is_turn = self.cores.is_none() || (index + 1).is_multiple_of(TURN_LINES);
            if is_turn || index + 1 == count {
                let bytes = std::mem::take(&mut uncomputed);
                match left {
                    Some(_) => self.combine_in_caches(&mut pace, bytes).await,
                    None => self.copy(&mut pace, bytes).await,
                }
            }
        }
        pace.settle().await;
        window.done().max(pace.front)
    }

    pub(super) async fn begin(&self, site: Site<'_>) {
        let mut pace = Pace::new(site);
        self.work(&mut pace, self.cycles(CALL_CYCLES), Work::Instructions).await;
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
        self.combine_in_caches(&mut pace, bytes).await;
        pace.settle().await;
    }

    pub(super) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        let mut pace = Pace::new(site);
        self.touch_flag(&mut pace).await;
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
        self.touch_flag(&mut pace).await;
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
            self.copy(&mut pace, bytes).await;
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
            self.copy(&mut pace, bytes).await;
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
