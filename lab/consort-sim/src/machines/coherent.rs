//! Machines with coherent caches: the cost of a line depends on its state and its distance.
//!
//! The costs are those of David, Guerraoui and Trigonakis, "Everything you always wanted to know
//! about synchronization but were afraid to ask" (2013): Table 2 lists loads, stores and atomic
//! operations on a line that another core holds, by the line's state and that core's distance;
//! Table 3 lists the caches and the memory.

use serde::{Deserialize, Serialize};

use super::{
    Described,
    layout::Layout,
    reading::{self, Flaw, ensure},
    sharing::{Banks, Core, Links},
    threads::Threads,
};

/// Cores with coherent caches.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coherent {
    /// Core cycles per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub ghz: f64,
    /// Bytes in a cache line.
    #[serde(deserialize_with = "reading::size")]
    pub line_bytes: usize,
    /// The cores, and how they are connected.
    pub layout: Layout,
    /// The names of the distances, from near to far: `core`; then `die` and `package`, if they
    /// exist; then `1 hop`, `2 hops` and so on. A file for a mesh names `core`, `1 hop` and the
    /// longest distance. The distances between them are added here.
    pub distances: Vec<String>,
    /// The costs of loading a word.
    pub load: Costs,
    /// The costs of storing a word.
    pub store: Costs,
    /// The costs of atomic operations.
    pub atomic: Atomics,
    /// The caches, from near to far.
    #[serde(rename = "cache")]
    pub caches: Vec<Cache>,
    /// The memory.
    pub memory: Memory,
    /// The number of accesses to lines that overlap when a core reads or writes many in a row.
    #[serde(deserialize_with = "reading::positive")]
    pub lines_in_flight: f64,
    /// The bytes that a core works on at a time. Only accesses to these overlap. Unlimited by
    /// default.
    #[serde(default, deserialize_with = "reading::optional")]
    pub reorder_bytes: Option<f64>,
    /// The bandwidth of a core that copies data in its own cache, in bytes per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub copy_gbps: f64,
    /// The bandwidth of a core that adds doubles to others, all in its own cache, in bytes of the
    /// result per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub combine_gbps: f64,
    /// How long a transfer of a line between caches occupies the hub through which all transfers
    /// pass. `None` if there is no hub.
    #[serde(default, deserialize_with = "reading::optional")]
    pub hub_ns: Option<f64>,
    /// How long a transfer occupies the line itself, so that the next one waits.
    #[serde(deserialize_with = "reading::not_negative")]
    pub line_serve_ns: f64,
    /// The parts of a core that its threads share. By default they take turns at all their work.
    #[serde(default)]
    pub core: Option<Core>,
    /// The banks of the outermost caches. By default they never limit a core.
    #[serde(default)]
    pub banks: Option<Banks>,
    /// The links between packages. By default they never limit a transfer.
    #[serde(default)]
    pub links: Option<Links>,
    /// The hardware message queues between cores; `None` if there are none.
    #[serde(default)]
    pub queue: Option<MessageQueue>,
    /// How its threads issue operations on shared words. `None` if the description does not say so;
    /// locks cannot be simulated on such a machine.
    #[serde(default)]
    pub threads: Option<Threads>,
}

/// The state of a line in the cache that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The only copy; memory is stale.
    Modified,
    /// One of several copies; memory is stale.
    Owned,
    /// The only copy; memory is up to date.
    Exclusive,
    /// One of several copies; memory or an owner is up to date.
    Shared,
    /// In no cache. It is loaded from memory.
    Invalid,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Modified, Self::Owned, Self::Exclusive, Self::Shared, Self::Invalid];
}

/// The costs of an operation on a line, in cycles, for each state of the line. Each row has a
/// number for each distance.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// [`State::Modified`].
    #[serde(deserialize_with = "reading::row")]
    pub modified: Vec<f64>,
    /// [`State::Owned`]. The default is the costs of a shared line.
    #[serde(default, deserialize_with = "reading::optional_row")]
    pub owned: Option<Vec<f64>>,
    /// [`State::Exclusive`]. The default is the costs of a modified line.
    #[serde(default, deserialize_with = "reading::optional_row")]
    pub exclusive: Option<Vec<f64>>,
    /// [`State::Shared`].
    #[serde(deserialize_with = "reading::row")]
    pub shared: Vec<f64>,
    /// [`State::Invalid`]. The default is the cost of a load, which must be given.
    #[serde(default, deserialize_with = "reading::optional_row")]
    pub invalid: Option<Vec<f64>>,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomicOp {
    /// Compare and swap.
    CompareExchange,
    /// Fetch and add.
    FetchAdd,
    /// Test and set.
    TestAndSet,
    /// Swap.
    Swap,
}

impl AtomicOp {
    /// All operations.
    pub const ALL: [Self; 4] =
        [Self::CompareExchange, Self::FetchAdd, Self::TestAndSet, Self::Swap];
}

/// The costs of the atomic operations.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Atomics {
    /// Compare and swap.
    pub compare_exchange: Costs,
    /// Fetch and add. The default is the costs of compare and swap.
    pub fetch_add: Option<Costs>,
    /// Test and set. The default is the costs of compare and swap.
    pub test_and_set: Option<Costs>,
    /// Swap. The default is the costs of compare and swap.
    pub swap: Option<Costs>,
}

/// A level of the caches.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Its size in bytes.
    #[serde(deserialize_with = "reading::size")]
    pub bytes: usize,
    /// The number of lines in a set.
    #[serde(deserialize_with = "reading::size")]
    pub ways: usize,
    /// The latency of a load that finds its line in this level, in cycles.
    #[serde(deserialize_with = "reading::positive")]
    pub latency_cycles: f64,
    /// The number of hardware threads that share a cache of this level.
    #[serde(deserialize_with = "reading::count")]
    pub threads: u32,
    /// Whether a cache keeps copies of lines whose last writer uses another cache of this level.
    #[serde(default = "foreign")]
    pub foreign: bool,
}

/// Returns the default: a cache keeps all lines.
const fn foreign() -> bool {
    true
}

/// The memory of a coherent machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The time of a load from the nearest memory, in cycles.
    #[serde(deserialize_with = "reading::positive")]
    pub load_cycles: f64,
    /// The number of memory controllers.
    #[serde(deserialize_with = "reading::count")]
    pub controllers: u32,
    /// The bandwidth of a controller, in bytes per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub gbps: f64,
}

/// Hardware message queues between cores: each core has a buffer, which several queues share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageQueue {
    /// The number of words of 8 bytes in the buffer of a core.
    #[serde(deserialize_with = "reading::size")]
    pub words: usize,
    /// The number of queues that share a buffer.
    #[serde(deserialize_with = "reading::count")]
    pub ways: u32,
    /// The cycles of a link of the mesh.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hop_cycles: f64,
    /// The cycles of a message between the instructions that send and receive it, excluding the
    /// links.
    #[serde(deserialize_with = "reading::not_negative")]
    pub message_cycles: f64,
    /// The cycles of the instruction that sends or receives a word. A sent message has one
    /// additional word, its destination.
    #[serde(deserialize_with = "reading::not_negative")]
    pub word_cycles: f64,
}

impl Described for Coherent {
    fn complete(mut self) -> Result<Self, Flaw> {
        self.layout.check()?;
        let (named, all) = self.layout.distances();
        ensure(
            self.distances == named,
            "distances",
            format!("expected {named:?}, as the layout says, found {:?}", self.distances),
        )?;
        ensure(
            self.load.invalid.is_some(),
            "load",
            "missing `invalid`, the cost of loads from memory",
        )?;
        let atomic = &mut self.atomic;
        let tables = [
            ("load", Some(&mut self.load)),
            ("store", Some(&mut self.store)),
            ("atomic.compare_exchange", Some(&mut atomic.compare_exchange)),
            ("atomic.fetch_add", atomic.fetch_add.as_mut()),
            ("atomic.test_and_set", atomic.test_and_set.as_mut()),
            ("atomic.swap", atomic.swap.as_mut()),
        ];
        for (keys, costs) in tables {
            costs.map_or(Ok(()), |costs| costs.complete(keys, named.len(), all.len()))?;
        }
        self.distances = all;
        self.core.as_ref().map_or(Ok(()), |core| core.check(self.layout.threads_per_core()))?;
        let has_packages = matches!(self.layout, Layout::Packages { .. });
        let message = "expected a layout of packages, between which the links are";
        ensure(has_packages || self.links.is_none(), "links", message)?;
        self.threads.as_ref().map_or(Ok(()), Threads::check)?;
        ensure(!self.caches.is_empty(), "cache", "expected at least one cache, found none")?;
        let threads = self.threads();
        for (index, cache) in self.caches.iter().enumerate() {
            ensure(
                threads.is_multiple_of(cache.threads),
                format!("cache.{index}.threads"),
                format!(
                    "expected a number that divides the {threads} threads, found {}",
                    cache.threads
                ),
            )?;
            ensure(
                (cache.bytes / self.line_bytes).is_multiple_of(cache.ways)
                    && cache.bytes.is_multiple_of(self.line_bytes),
                format!("cache.{index}.bytes"),
                format!(
                    "expected a whole number of sets of {} lines of {} bytes, found {}",
                    cache.ways, self.line_bytes, cache.bytes
                ),
            )?;
        }
        Ok(self)
    }
}

impl Costs {
    /// Checks that there is a number for each distance that a file names. Computes the numbers of
    /// the distances between the last two by linear interpolation.
    fn complete(&mut self, keys: &str, named: usize, all: usize) -> Result<(), Flaw> {
        let rows = [
            ("modified", Some(&mut self.modified)),
            ("owned", self.owned.as_mut()),
            ("exclusive", self.exclusive.as_mut()),
            ("shared", Some(&mut self.shared)),
            ("invalid", self.invalid.as_mut()),
        ];
        for (key, row) in rows {
            let Some(row) = row else { continue };
            let message =
                format!("expected {named} numbers, one for each distance, found {}", row.len());
            ensure(row.len() == named, format!("{keys}.{key}"), message)?;
            if let [.., near, far] = row[..]
                && all > named
            {
                row.truncate(named - 1);
                let steps = all + 1 - named;
                row.extend((1..=steps).map(|step| near + (far - near) * ratio(step, steps)));
            }
        }
        Ok(())
    }

    /// Returns the row of a state: its own, or that of the state it defaults to.
    fn of(&self, state: State) -> Option<&[f64]> {
        match state {
            State::Modified => Some(&self.modified),
            State::Owned => Some(self.owned.as_ref().unwrap_or(&self.shared)),
            State::Exclusive => Some(self.exclusive.as_ref().unwrap_or(&self.modified)),
            State::Shared => Some(&self.shared),
            State::Invalid => self.invalid.as_deref(),
        }
    }
}

/// Returns the fraction of a number of steps.
#[expect(clippy::cast_precision_loss, reason = "distances are few")]
fn ratio(step: usize, steps: usize) -> f64 {
    step as f64 / steps as f64
}

impl Coherent {
    /// Returns the number of hardware threads.
    pub fn threads(&self) -> u32 {
        self.layout.threads()
    }

    /// Returns the distance between two threads, as an index into [`Self::distances`].
    pub fn distance(&self, a: u32, b: u32) -> usize {
        self.layout.distance(a, b)
    }

    /// Returns the time of a load by a core that does not have the line, in nanoseconds.
    ///
    /// # Panics
    /// When there is no such distance.
    pub fn load_ns(&self, state: State, distance: usize) -> f64 {
        self.cost_ns(&self.load, state, distance)
    }

    /// Returns the time of a store by a core that does not have the line exclusively, in
    /// nanoseconds.
    ///
    /// # Panics
    /// When there is no such distance.
    pub fn store_ns(&self, state: State, distance: usize) -> f64 {
        self.cost_ns(&self.store, state, distance)
    }

    /// Returns the time of an atomic operation by a core that does not have the line exclusively,
    /// in nanoseconds.
    ///
    /// # Panics
    /// When there is no such distance.
    pub fn atomic_ns(&self, op: AtomicOp, state: State, distance: usize) -> f64 {
        let Atomics { compare_exchange, fetch_add, test_and_set, swap } = &self.atomic;
        let costs = match op {
            AtomicOp::CompareExchange => None,
            AtomicOp::FetchAdd => fetch_add.as_ref(),
            AtomicOp::TestAndSet => test_and_set.as_ref(),
            AtomicOp::Swap => swap.as_ref(),
        };
        self.cost_ns(costs.unwrap_or(compare_exchange), state, distance)
    }

    /// Returns the time of a load that finds its line in this level of the core's own caches, in
    /// nanoseconds.
    ///
    /// # Panics
    /// When there is no such level, counted from 0.
    pub fn cache_ns(&self, level: usize) -> f64 {
        self.caches[level].latency_cycles / self.ghz
    }

    /// Returns the time of a load from the nearest memory, in nanoseconds.
    pub fn memory_ns(&self) -> f64 {
        self.memory.load_cycles / self.ghz
    }

    fn cost_ns(&self, costs: &Costs, state: State, distance: usize) -> f64 {
        let row = costs.of(state).or_else(|| self.load.of(state));
        row.expect("a description has the cost of a load in every state")[distance] / self.ghz
    }
}
