//! The state of memory lines: the last writer and reader of each, and the caches that hold it.
//!
//! A cache has sets of ways, and replaces the least recently used line. An outer cache keeps all
//! lines of an inner one. A write does not remove the line from other caches. It increments the
//! line's version, and a cache that holds an older version does not hold the line.

use consort_fabric::{Place, Rank};

use crate::{
    costs::Where,
    engine::Time,
    machines::{Coherent, State},
};

/// The number of places in a PE's memory.
const PLACES: usize = 6;
/// Assumption: the memories of PEs start 64 KiB apart, or a multiple of it, as in the paper's
/// runtime. Lines at the same offset of all PEs therefore fall into few sets.
const SEGMENT_LINES: usize = 1024;
/// Assumption: the buffers of a PE are at different offsets of its memory.
const PLACE_LINES: usize = 170;

/// The bits of a version in the content of a way. An old version is mistaken for the present one
/// only if a line stays unused in a cache while it is written 2^24 times.
const VERSION_BITS: u32 = 24;
/// The content of an empty way.
const EMPTY: u64 = u64::MAX;

/// A line of memory: a PE, a place and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pe: u32,
    place: u8,
    index: u32,
}

/// The place where an access finds its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// One of the thread's own caches.
    Own,
    /// The cache of this thread, which is on another core. The line has this state there.
    At(u32, State),
    /// Memory: no cache has it.
    Memory,
}

/// The state of a line. Threads represent their cores.
#[derive(Clone, Copy, Debug)]
struct Line {
    version: u32,
    /// The last writer, which holds the line.
    holder: u32,
    /// The last reader since that write.
    reader: Option<u32>,
    /// When its last transfer ends.
    busy: Time,
}

/// The states of all lines, and the contents of all caches.
pub(super) struct Lines {
    lines: Vec<[Vec<Line>; PLACES]>,
    levels: Vec<Level>,
    threads_per_core: u32,
}

/// The caches of one level.
struct Level {
    threads: u32,
    sets: usize,
    ways: usize,
    /// The contents of each way of each set of each cache, the most recently used first.
    held: Vec<u64>,
    /// Whether a cache of this level keeps lines whose holder is in another cache of the level.
    foreign: bool,
}

impl Id {
    /// Returns the line `index` lines after the first line of a memory.
    pub(super) fn new(at: Where, line_bytes: usize, index: usize) -> Self {
        let Where { pe: Rank(pe), place, at } = at;
        let place = match place {
            Place::Source => 0,
            Place::Target => 1,
            Place::Accumulator => 2,
            Place::Incoming => 3,
            Place::Heap => 4,
            Place::Buffer => 5,
        };
        let index = u32::try_from(at / line_bytes + index).unwrap_or(u32::MAX);
        Self { pe, place, index }
    }

    /// Returns the PE whose memory contains the line.
    pub(super) const fn home(self) -> u32 {
        self.pe
    }

    /// Returns its number within its place.
    pub(super) const fn index(self) -> u32 {
        self.index
    }

    /// Returns the content of a way that holds a version of the line: 12 bits of the PE, 3 of the
    /// place, 25 of the number, and the version.
    const fn held(self, version: u32) -> u64 {
        let line = (self.pe as u64) << 28 | (self.place as u64) << 25 | self.index as u64;
        line << VERSION_BITS | (version % (1 << VERSION_BITS)) as u64
    }

    /// Returns the number of the line in the machine's memory. The sets of caches follow from it.
    pub(super) const fn address(self) -> usize {
        self.pe as usize * SEGMENT_LINES + self.place as usize * PLACE_LINES + self.index as usize
    }
}

impl Level {
    fn set(&mut self, thread: u32, id: Id) -> &mut [u64] {
        let cache = (thread / self.threads) as usize;
        let first = (cache * self.sets + id.address() % self.sets) * self.ways;
        &mut self.held[first..first + self.ways]
    }

    fn holds(&mut self, thread: u32, id: Id, version: u32) -> bool {
        self.set(thread, id).contains(&id.held(version))
    }

    /// Uses a line. Returns whether the cache had this version.
    fn touch(&mut self, thread: u32, id: Id, version: u32) -> bool {
        let held = id.held(version);
        let set = self.set(thread, id);
        if set[0] == held {
            return true;
        }
        let same = |way: &u64| way >> VERSION_BITS == held >> VERSION_BITS;
        let found = set.iter().position(same).unwrap_or(set.len() - 1);
        let there = set[found] == held;
        set.copy_within(..found, 1);
        set[0] = held;
        there
    }
}

impl Lines {
    pub(super) fn new(machine: &Coherent, threads_per_core: u32, pes: u32) -> Self {
        let level = |cache: &crate::machines::Cache| {
            let sets = cache.bytes / machine.line_bytes / cache.ways;
            let caches = pes.div_ceil(cache.threads) as usize;
            let held = vec![EMPTY; caches * sets * cache.ways];
            let (threads, ways, foreign) = (cache.threads, cache.ways, cache.foreign);
            Level { threads, sets, ways, held, foreign }
        };
        Self {
            lines: (0..pes).map(|_| Default::default()).collect(),
            levels: machine.caches.iter().map(level).collect(),
            threads_per_core,
        }
    }

    fn line(&mut self, id: Id) -> &mut Line {
        let place = &mut self.lines[id.pe as usize][id.place as usize];
        let index = id.index as usize;
        if place.len() <= index {
            place.resize(index + 1, Line { version: 0, holder: id.pe, reader: None, busy: 0 });
        }
        &mut place[index]
    }

    /// Returns the state of a line. Before its first access, the line counts as written once by its
    /// own PE.
    fn known(&mut self, id: Id) -> Line {
        let line = *self.line(id);
        if line.version > 0 {
            return line;
        }
        self.line(id).version = 1;
        let line = *self.line(id);
        self.touch(id.pe, id, line);
        line
    }

    /// Occupies a line for `time`, for an access that arrives now. Returns how long it waits before
    /// that.
    pub(super) fn serve(&mut self, id: Id, now: Time, time: Time) -> Time {
        let line = self.line(id);
        let begins = now.max(line.busy);
        line.busy = begins + time;
        begins - now
    }

    fn same_core(&self, one: u32, other: u32) -> bool {
        one / self.threads_per_core == other / self.threads_per_core
    }

    /// Returns the nearest level that has this version. Afterwards all levels have it.
    fn touch(&mut self, thread: u32, id: Id, line: Line) -> Option<usize> {
        let mut found = None;
        for (index, level) in self.levels.iter_mut().enumerate() {
            if !level.foreign && line.holder / level.threads != thread / level.threads {
                continue;
            }
            let there = level.touch(thread, id, line.version);
            found = found.or(there.then_some(index));
        }
        found
    }

    /// Returns whether the outermost cache of a thread has this version of a line.
    fn holds(&mut self, thread: u32, id: Id, version: u32) -> bool {
        self.levels.last_mut().is_some_and(|level| level.holds(thread, id, version))
    }

    /// Returns the cache of the line's holder, if the holder is another core and has the line.
    fn at_holder(&mut self, me: u32, id: Id, line: Line) -> Option<Found> {
        let holder = Some(line.holder).filter(|&holder| !self.same_core(holder, me))?;
        let state = if line.reader.is_some() { State::Shared } else { State::Modified };
        self.holds(holder, id, line.version).then_some(Found::At(holder, state))
    }

    /// Reads a line. Returns where the thread finds it.
    pub(super) fn read(&mut self, me: u32, id: Id) -> Found {
        let line = self.known(id);
        let elsewhere = self.at_holder(me, id, line);
        let own = self.touch(me, id, line);
        let found = match (own, elsewhere) {
            (Some(level), _) if self.levels[level].threads <= self.threads_per_core => Found::Own,
            // A cache that several cores share may hold an old version of a line that one of them
            // has written since.
            (Some(_), Some(Found::At(_, State::Shared)) | None) => Found::Own,
            (_, Some(elsewhere)) => elsewhere,
            (None, None) => Found::Memory,
        };
        match found {
            Found::Own => {}
            Found::At(..) | Found::Memory => self.line(id).reader = Some(me),
        }
        found
    }

    /// Writes a line. Returns where the thread finds it. Afterwards no other core has it.
    pub(super) fn write(&mut self, me: u32, id: Id) -> Found {
        let line = self.known(id);
        let elsewhere = self.at_holder(me, id, line);
        let reader = line.reader.filter(|&reader| !self.same_core(reader, me));
        let own = self.touch(me, id, line);
        let found = match (own, reader, elsewhere) {
            (_, Some(reader), _) => Found::At(reader, State::Shared),
            (_, None, Some(elsewhere)) => elsewhere,
            (Some(_), None, None) => return Found::Own,
            (None, None, None) => Found::Memory,
        };
        let version = line.version.wrapping_add(1);
        let line = Line { version, holder: me, reader: None, busy: line.busy };
        *self.line(id) = line;
        self.touch(me, id, line);
        found
    }
}
