//! The parts that threads share besides caches and memory: the pipelines and load/store units of
//! cores, the banks of the outermost caches, and the links of packages.

use super::{lines::Id, server::Server};
use crate::{
    engine::{Time, picoseconds},
    machines::{Coherent as Machine, Layout},
};

/// A thread's work on data in its caches.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// Instructions that do not wait.
    Instructions,
    /// Copying this many bytes.
    Copy(usize),
    /// Combining this many bytes with others.
    Combine(usize),
}

/// The cores of several threads. Without a description of its parts, a core has one pipeline and
/// never waits.
pub(super) struct Cores {
    threads_per_core: u32,
    threads_per_pipeline: u32,
    pes: u32,
    polls: bool,
    copy_waits: f64,
    combine_waits: f64,
    access: Time,
    pipelines: Vec<Server>,
    load_store_units: Vec<Server>,
}

impl Cores {
    /// Returns the cores of the first `pes` threads, or `None` if each thread has its own.
    pub(super) fn new(machine: &Machine, threads_per_core: u32, pes: u32) -> Option<Self> {
        let core = machine.core.as_ref();
        let threads_per_pipeline = threads_per_core / core.map_or(1, |core| core.pipelines);
        let servers = |share: u32| (0..pes.div_ceil(share)).map(|_| Server::default()).collect();
        (threads_per_core > 1).then(|| Self {
            threads_per_core,
            threads_per_pipeline,
            pes,
            polls: core.is_some_and(|core| core.polls),
            copy_waits: core.map_or(0.0, |core| core.copy_waits),
            combine_waits: core.map_or(0.0, |core| core.combine_waits),
            access: core.map_or(0, |core| picoseconds(core.access_cycles / machine.ghz)),
            pipelines: servers(threads_per_pipeline),
            load_store_units: servers(threads_per_core),
        })
    }

    /// Returns whether threads that wait take turns as well.
    pub(super) const fn polls(&self) -> bool {
        self.polls
    }

    /// Serves work that a thread starts now and that takes `time` if no other thread uses the core.
    /// Returns how much longer it takes.
    pub(super) fn take(&self, thread: u32, now: Time, time: Time, work: Work) -> Time {
        let (waits, accesses) = match work {
            Work::Instructions => (0.0, 0),
            // Words of 8 bytes: a load and a store, or two loads and a store.
            Work::Copy(bytes) => (self.copy_waits, 2 * bytes.div_ceil(8)),
            Work::Combine(bytes) => (self.combine_waits, 3 * bytes.div_ceil(8)),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let issue = (time as f64 * (1.0 - waits)).round() as Time;
        let pipeline = thread / self.threads_per_pipeline;
        let queued = if self.polls {
            let first = pipeline * self.threads_per_pipeline;
            let others = self.threads_per_pipeline.min(self.pes - first) - 1;
            issue * Time::from(others)
        } else {
            self.pipelines[pipeline as usize].take(now, issue)
        };
        if accesses == 0 {
            return queued;
        }
        let unit = &self.load_store_units[(thread / self.threads_per_core) as usize];
        queued.max(unit.take(now, self.access * accesses as Time))
    }
}

/// The banks of the outermost caches.
pub(super) struct Banks {
    threads_per_cache: u32,
    count: usize,
    load: Time,
    store: Time,
    servers: Vec<Server>,
}

impl Banks {
    /// Returns the banks of the caches of the first `pes` threads, or `None` if the machine's
    /// description has none.
    pub(super) fn new(machine: &Machine, pes: u32) -> Option<Self> {
        let (banks, cache) = (machine.banks.as_ref()?, machine.caches.last()?);
        let cycles = |cycles: f64| picoseconds(cycles / machine.ghz);
        let (caches, count) = (pes.div_ceil(cache.threads) as usize, banks.count as usize);
        Some(Self {
            threads_per_cache: cache.threads,
            count,
            load: cycles(banks.load_cycles),
            store: cycles(banks.store_cycles),
            servers: (0..caches * count).map(|_| Server::default()).collect(),
        })
    }

    /// Serves a thread that accesses a line now. Returns how long it waits before that.
    pub(super) fn take(&self, thread: u32, id: Id, now: Time, writes: bool) -> Time {
        let (cache, bank) = ((thread / self.threads_per_cache) as usize, id.address() % self.count);
        let time = if writes { self.store } else { self.load };
        self.servers[cache * self.count + bank].take(now, time)
    }
}

/// The links of packages to the hubs of the planes.
pub(super) struct Links {
    threads_per_package: u32,
    planes: usize,
    lines_of_plane: usize,
    line: Time,
    /// The outgoing and the incoming link of each plane of each package.
    servers: Vec<[Server; 2]>,
}

impl Links {
    /// Returns the links of a machine, or `None` if its description has none.
    pub(super) fn new(machine: &Machine) -> Option<Self> {
        let links = machine.links.as_ref()?;
        let Layout::Packages { packages, .. } = machine.layout else { return None };
        let planes = links.planes as usize;
        let servers = 0..packages as usize * planes;
        Some(Self {
            threads_per_package: machine.threads() / packages,
            planes,
            lines_of_plane: (links.plane_bytes / machine.line_bytes).max(1),
            line: picoseconds(links.line_ns),
            servers: servers.map(|_| Default::default()).collect(),
        })
    }

    /// Moves a line from one thread's package to another's, now. Returns how long it waits for
    /// links. Links inside a package are free.
    pub(super) fn take(&self, from: u32, to: u32, id: Id, now: Time) -> Time {
        let [from, to] = [from, to].map(|thread| (thread / self.threads_per_package) as usize);
        if from == to {
            return 0;
        }
        let plane = id.address() / self.lines_of_plane % self.planes;
        let link = |package: usize| &self.servers[package * self.planes + plane];
        let leaves = link(from)[0].take(now, self.line);
        leaves + link(to)[1].take(now + leaves, self.line)
    }
}
