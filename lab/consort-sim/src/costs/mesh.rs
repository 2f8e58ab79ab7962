//! Cores with message buffers on a mesh: the costs of the Intel SCC.
//!
//! The calling core moves every line, one after the other: `C_r^mpb`, `C_w^mpb`, `C_r^mem`,
//! `C_w^mem` of Petrović 2015, section 4.1, formulas 4.1 to 4.12. A core's own memory is free of
//! contention. The message buffers of a tile serve one line after the other. The routers on the way
//! serve their sides in turn, so cores far away wait longer (section 4.1.3: with 48 accessors, the
//! slowest is more than two times slower than the fastest). Packets may also wait for links that
//! other packets occupy.
//!
//! Messages are those of RCCE (section 4.2): the sender puts a piece into its own buffer and sets a
//! flag at the receiver. The receiver gets the piece and sets a flag at the sender. Memory lines
//! that a core has recently read or written are in its caches, and reading them again costs
//! nothing.

mod interrupts;
mod links;
mod pace;
mod tiles;

use std::cell::{Cell, RefCell};

use consort_fabric::{Capabilities, Place, Rank};

use self::{
    interrupts::Controller,
    links::{Links, Packet},
    pace::Pace,
    tiles::Tiles,
};
use super::{Effects, Site, Where};
use crate::{
    account::Cause,
    engine::{Time, picoseconds},
    machines::MessageBuffers,
};

/// The random variation of each access, in picoseconds. Without it, cores would run in lockstep.
const JITTER: Time = 20_000;
/// Lines of a message buffer that RCCE keeps for flags: 251 of 256 lines are for the message.
const RCCE_FLAG_LINES: usize = 5;

/// The costs of cores with message buffers on a mesh.
pub(crate) struct Mesh {
    line_bytes: usize,
    buffer_lines: usize,
    /// The tile of each core.
    tile_of: Vec<usize>,
    /// The number of routers from tile to tile.
    distances: Vec<Vec<Time>>,
    /// The number of routers from a core to its memory controller.
    memory_distances: Vec<Time>,
    hop: Time,
    buffer: Time,
    memory_write: Time,
    memory_read: Time,
    put: Time,
    get: Time,
    put_memory: Time,
    get_memory: Time,
    flag_read: Time,
    serve: Time,
    overhead: Time,
    /// The queues at the tiles' buffers, if contention is simulated.
    tiles: Option<Tiles>,
    /// The links between routers, if their contention is simulated.
    links: Option<Links>,
    queued_reads: u32,
    queued_writes: u32,
    /// Whether a flag is written by a whole put, and reset by the core that reads it.
    resets: bool,
    controller: Controller,
    caches: Vec<Caches>,
    cache_lines: u32,
}

/// The contents of a core's caches: for each line of its buffers, the number of the last access.
#[derive(Default)]
struct Caches {
    touches: Cell<u32>,
    source: RefCell<Vec<u32>>,
    target: RefCell<Vec<u32>>,
}

/// The kind of access to a line of a message buffer.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
}

impl Mesh {
    /// Interrupts some cores. Returns when each receives the interrupt. It is assumed that the
    /// core's own part takes as long as any access to the mesh.
    pub(crate) async fn interrupt(&self, site: Site<'_>, to: &[Rank]) -> Vec<Time> {
        self.controller.interrupt(site, to, self.buffer).await
    }

    /// See [`Costs::interrupted`](super::Costs::interrupted).
    pub(crate) async fn interrupted(&self, site: Site<'_>, serving: &Cell<Time>, arrived: Time) {
        self.controller.handle(site, serving, arrived).await;
    }

    pub(crate) fn new(machine: &MessageBuffers, pes: u32, effects: Effects) -> Self {
        let distance = |routers: u32| if effects.distances { Time::from(routers) } else { 1 };
        let tiles = machine.columns * machine.rows;
        let core_of = |tile: u32| tile * machine.cores_per_tile;
        let distances = (0..tiles)
            .map(|from| {
                let to = |to| distance(machine.distance(core_of(from), core_of(to)));
                (0..tiles).map(to).collect()
            })
            .collect();
        Self {
            line_bytes: machine.line_bytes,
            buffer_lines: machine.buffer_bytes / machine.line_bytes,
            tile_of: (0..pes).map(|core| (core / machine.cores_per_tile) as usize).collect(),
            distances,
            memory_distances: (0..pes)
                .map(|core| distance(machine.memory_distance(core)))
                .collect(),
            hop: picoseconds(machine.hop_ns),
            buffer: picoseconds(machine.mpb_ns),
            memory_write: picoseconds(machine.memory_write_ns),
            memory_read: picoseconds(machine.memory_read_ns),
            put: picoseconds(machine.put_ns),
            get: picoseconds(machine.get_ns),
            put_memory: picoseconds(machine.put_memory_ns),
            get_memory: picoseconds(machine.get_memory_ns),
            flag_read: picoseconds(machine.flag_read_ns),
            serve: picoseconds(machine.serve_ns),
            overhead: picoseconds(machine.overhead_ns.filter(|_| effects.fitted).unwrap_or(0.0)),
            tiles: effects.contention.then(|| {
                let room = machine.queued_reads * machine.queued_writes;
                Tiles::new(machine.columns as usize, machine.rows as usize, pes, room)
            }),
            links: machine.link.filter(|_| effects.links && effects.distances).map(|link| {
                let flits = (picoseconds(link.flit_ns), link.line_flits);
                let (columns, rows) = (machine.columns as usize, machine.rows as usize);
                Links::new(columns, rows, picoseconds(machine.hop_ns), flits)
            }),
            queued_reads: machine.queued_reads,
            queued_writes: machine.queued_writes,
            resets: effects.fitted,
            controller: Controller::new(machine, effects.fitted),
            caches: (0..pes).map(|_| Caches::default()).collect(),
            cache_lines: u32::try_from(machine.cache_bytes / machine.line_bytes).unwrap_or(0),
        }
    }

    /// Returns the room that a request takes in a queue. A queue has room for
    /// `queued_reads * queued_writes`, so it holds `queued_reads` reads or `queued_writes` writes.
    const fn size(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Read => self.queued_writes,
            Kind::Write => self.queued_reads,
        }
    }

    /// Returns the size of the pieces of RCCE's messages, in bytes.
    pub(crate) const fn piece_bytes(&self) -> usize {
        (self.buffer_lines - RCCE_FLAG_LINES) * self.line_bytes
    }

    pub(super) fn capabilities(&self, pes: u32) -> Capabilities {
        // Each flag is a line, and there is one for every peer.
        let data_lines = self.buffer_lines.saturating_sub(pes as usize);
        Capabilities {
            inbox_channels: 1 << 20,
            scratch_bytes: 1 << 20,
            buffer_bytes: data_lines * self.line_bytes,
            exposes: false,
            buffered: false,
            pairwise_bytes: consort_fabric::PAIRWISE_BYTES,
            counts: true,
            vendor: consort_fabric::Vendor::NONE,
            nodes: consort_fabric::Nodes::One,
            levels: consort_fabric::Levels::NONE,
        }
    }

    fn distance(&self, from: u32, to: u32) -> Time {
        self.distances[self.tile_of[from as usize]][self.tile_of[to as usize]]
    }

    /// Reads or writes one line of the buffer of `owner` for the core of `pace`. Returns when the
    /// line has arrived, which is before the core gets the acknowledgement.
    async fn access(&self, pace: &mut Pace<'_>, kind: Kind, owner: u32, cause: Cause) -> Time {
        let (site, me) = (pace.site, pace.site.me);
        let way = self.distance(me, owner) * self.hop;
        let Some(tiles) = &self.tiles else {
            pace.spend(cause, self.buffer + 2 * way);
            return site.engine.now() + pace.ahead - way;
        };
        let jitter = site.engine.roll_below(2 * JITTER);
        pace.ahead = (pace.ahead + jitter).saturating_sub(JITTER);
        pace.spend(cause, self.buffer - self.serve + way);
        pace.settle().await;
        let (from, to) = (self.tile_of[me as usize], self.tile_of[owner as usize]);
        let (there, back) = match kind {
            Kind::Read => (Packet::Header, Packet::Line),
            Kind::Write => (Packet::Line, Packet::Header),
        };
        let waited = self.pass((from, to), there, site.engine.now() - way);
        if waited > 0 {
            pace.spend(Cause::Contention, waited);
            pace.settle().await;
        }
        let arrival = site.engine.now();
        tiles.serve(site.engine, (me, from), to, self.size(kind), self.serve).await;
        let queued = site.engine.now() - arrival;
        site.account.spend(Cause::Contention, queued);
        pace.spend(cause, self.serve + way);
        let served = site.engine.now() + self.serve;
        pace.spend(Cause::Contention, self.pass((to, from), back, served));
        served
    }

    /// Returns how long a packet waits for links from tile to tile.
    fn pass(&self, (from, to): (usize, usize), packet: Packet, off: Time) -> Time {
        self.links.as_ref().map_or(0, |links| links.pass(from, to, packet, off))
    }

    /// Reads one line of the core's memory.
    fn read_memory(&self, pace: &mut Pace<'_>, place: Place, line: usize) {
        let me = pace.site.me as usize;
        if !self.caches[me].touch(place, line, self.cache_lines) {
            let way = 2 * self.memory_distances[me] * self.hop;
            pace.spend(Cause::OffChip, self.memory_read + way);
        }
    }

    /// Writes one line of the core's memory.
    fn write_memory(&self, pace: &mut Pace<'_>, place: Place, line: usize) {
        let me = pace.site.me as usize;
        self.caches[me].touch(place, line, self.cache_lines);
        pace.spend(Cause::OffChip, self.memory_write + 2 * self.memory_distances[me] * self.hop);
    }

    fn lines(&self, at: usize, bytes: usize) -> std::ops::Range<usize> {
        at / self.line_bytes..(at + bytes).div_ceil(self.line_bytes).max(at / self.line_bytes + 1)
    }

    pub(super) async fn begin(&self, site: Site<'_>) {
        self.caches[site.me as usize].forget();
        site.spend(Cause::Compute, self.overhead).await;
    }

    pub(super) async fn transfer(
        &self,
        site: Site<'_>,
        from: Where,
        to: Where,
        bytes: usize,
    ) -> Time {
        let mut pace = Pace::new(site);
        let is_buffer = |at: Where| at.place == Place::Buffer;
        let call = match (is_buffer(from), is_buffer(to)) {
            (true, true) if from.pe.0 != site.me => self.get,
            (true, true) => self.put,
            (false, true) => self.put_memory,
            (true, false) => self.get_memory,
            (false, false) => 0,
        };
        pace.spend(Cause::OnChip, call);
        let mut landed = site.engine.now();
        let first = to.at / self.line_bytes;
        for (index, line) in self.lines(from.at, bytes).enumerate() {
            if is_buffer(from) {
                self.access(&mut pace, Kind::Read, from.pe.0, Cause::OnChip).await;
            } else {
                self.read_memory(&mut pace, from.place, line);
            }
            if is_buffer(to) {
                landed = self.access(&mut pace, Kind::Write, to.pe.0, Cause::OnChip).await;
            } else {
                self.write_memory(&mut pace, to.place, first + index);
            }
        }
        pace.settle().await;
        landed
    }

    pub(super) async fn combine(&self, site: Site<'_>, bytes: usize) {
        // Both operands are in the caches, so only the core's work remains, assumed to be two
        // cycles per byte.
        let cycles = 2 * bytes as Time;
        site.spend(Cause::Compute, cycles * 1000).await;
    }

    pub(super) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        let mut pace = Pace::new(site);
        let set = self.put_flag(&mut pace, to.0).await;
        pace.settle().await;
        set
    }

    pub(super) async fn observe(&self, site: Site<'_>, since: Time, _: Option<Rank>) {
        self.poll(site, since, self.flag_read).await;
        if self.resets {
            let mut pace = Pace::new(site);
            self.put_flag(&mut pace, site.me).await;
            pace.settle().await;
        }
    }

    /// Sets a flag by a put from the core's own buffer.
    async fn put_flag(&self, pace: &mut Pace<'_>, to: u32) -> Time {
        pace.spend(Cause::Flags, self.put);
        self.access(pace, Kind::Read, pace.site.me, Cause::Flags).await;
        self.access(pace, Kind::Write, to, Cause::Flags).await
    }

    /// Polls one of the core's own flags, since a time. The flag is set at the present time. The
    /// first poll that samples the flag after that sees it.
    async fn poll(&self, site: Site<'_>, since: Time, call: Time) {
        let way = self.distance(site.me, site.me) * self.hop;
        let period = call + self.buffer + 2 * way;
        let sampled = period - way;
        let waited = (site.engine.now() - since).saturating_sub(sampled);
        let polls = waited.div_ceil(period) + 1;
        site.account.spend(Cause::Flags, period);
        site.engine.sleep_until(since + polls * period).await;
    }

    /// Sets an RCCE flag by one access (section 4.2), or by a whole put.
    async fn set_flag(&self, pace: &mut Pace<'_>, to: u32) -> Time {
        if self.resets {
            return self.put_flag(pace, to).await;
        }
        self.access(pace, Kind::Write, to, Cause::Flags).await
    }

    pub(super) async fn send(&self, site: Site<'_>, to: Rank, from: Where, bytes: usize) -> Time {
        let buffer = Where { pe: Rank(site.me), place: Place::Buffer, at: 0 };
        self.transfer(site, from, buffer, bytes).await;
        let mut pace = Pace::new(site);
        let set = self.set_flag(&mut pace, to.0).await;
        pace.settle().await;
        set
    }

    pub(super) async fn receive(
        &self,
        site: Site<'_>,
        since: Time,
        from: Rank,
        to: Where,
        bytes: usize,
    ) -> Time {
        self.clear_flag(site, since).await;
        let buffer = Where { pe: from, place: Place::Buffer, at: 0 };
        self.transfer(site, buffer, to, bytes).await;
        let mut pace = Pace::new(site);
        let set = self.set_flag(&mut pace, from.0).await;
        pace.settle().await;
        set
    }

    pub(super) async fn handed_over(&self, site: Site<'_>, since: Time) {
        self.clear_flag(site, since).await;
    }

    /// Waits for a flag that is set, and resets it.
    async fn clear_flag(&self, site: Site<'_>, since: Time) {
        self.poll(site, since, 0).await;
        let mut pace = Pace::new(site);
        self.set_flag(&mut pace, site.me).await;
        pace.settle().await;
    }

    pub(super) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        let mut pace = Pace::new(site);
        self.access(&mut pace, Kind::Read, at.0, Cause::Flags).await;
        self.access(&mut pace, Kind::Write, at.0, Cause::Flags).await;
        pace.settle().await;
    }
}

impl Caches {
    /// Empties the caches: another call works on other memory.
    fn forget(&self) {
        self.touches.set(0);
        self.source.borrow_mut().clear();
        self.target.borrow_mut().clear();
    }

    /// Touches a line. Returns whether it was in the caches.
    fn touch(&self, place: Place, line: usize, capacity: u32) -> bool {
        let lines = match place {
            Place::Source => &self.source,
            Place::Target => &self.target,
            _ => return true, // small, and in use all the time
        };
        let mut lines = lines.borrow_mut();
        if lines.len() <= line {
            lines.resize(line + 1, 0);
        }
        let touches = self.touches.get() + 1;
        self.touches.set(touches);
        let last = std::mem::replace(&mut lines[line], touches);
        last > 0 && touches - last <= capacity
    }
}
