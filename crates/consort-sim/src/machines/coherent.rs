//! Machines whose caches are kept coherent: what a line costs by its state and its distance.
//!
//! The costs are those of David, Guerraoui and Trigonakis, "Everything you always wanted to know
//! about synchronization but were afraid to ask" (2013): Table 2 has loads, stores and atomic
//! operations on a line that another core holds, by its state and that core's distance; Table 3
//! has the caches and the memory.

use serde::{Deserialize, Serialize};

use super::{
    Described,
    layout::Layout,
    reading::{self, Flaw, ensure},
};

/// Cores whose caches are kept coherent.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coherent {
    /// Core cycles a nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub ghz: f64,
    /// Bytes of a cache line.
    #[serde(deserialize_with = "reading::size")]
    pub line_bytes: usize,
    /// The cores, and how they are connected.
    pub layout: Layout,
    /// The names of the distances, the nearest first: `core`; where there are such, `die` and
    /// `package`; then `1 hop`, `2 hops` and so on. A file for a mesh names `core`, `1 hop` and
    /// the longest way; here are all between them too.
    pub distances: Vec<String>,
    /// Loading a word.
    pub load: Costs,
    /// Storing a word.
    pub store: Costs,
    /// Atomic operations.
    pub atomic: Atomics,
    /// The caches, the nearest first.
    #[serde(rename = "cache")]
    pub caches: Vec<Cache>,
    /// The memory.
    pub memory: Memory,
    /// How many accesses to lines overlap when a core reads or writes many in a row.
    #[serde(deserialize_with = "reading::positive")]
    pub lines_in_flight: f64,
    /// Bytes that a core works on at a time: only accesses to them overlap; as many as it likes if
    /// not given.
    #[serde(default, deserialize_with = "reading::optional")]
    pub reorder_bytes: Option<f64>,
    /// Bandwidth of a core that copies what its own cache holds, in bytes a nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub copy_gbps: f64,
    /// Bandwidth of a core that adds doubles to others, all in its own cache, in bytes of the
    /// result a nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub combine_gbps: f64,
    /// How long a transfer of a line between caches occupies a place that all of them pass; none
    /// if there is no such place.
    #[serde(default, deserialize_with = "reading::optional")]
    pub hub_ns: Option<f64>,
    /// How long a transfer occupies the line itself, so that the next one waits.
    #[serde(deserialize_with = "reading::not_negative")]
    pub line_serve_ns: f64,
    /// Messages between cores in hardware; none if there are no such.
    #[serde(default)]
    pub queue: Option<MessageQueue>,
}

/// The state of a line in the cache that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The only copy, and memory is stale.
    Modified,
    /// One of several copies, and memory is stale.
    Owned,
    /// The only copy, as memory has it.
    Exclusive,
    /// One of several copies, as memory has it, or as an owner does.
    Shared,
    /// In no cache: it comes from memory.
    Invalid,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Modified, Self::Owned, Self::Exclusive, Self::Shared, Self::Invalid];
}

/// What an operation on a line costs by the state that it finds, in cycles, a number a distance.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// [`State::Modified`].
    #[serde(deserialize_with = "reading::row")]
    pub modified: Vec<f64>,
    /// [`State::Owned`]; without it, as shared.
    #[serde(default, deserialize_with = "reading::optional_row")]
    pub owned: Option<Vec<f64>>,
    /// [`State::Exclusive`]; without it, as modified.
    #[serde(default, deserialize_with = "reading::optional_row")]
    pub exclusive: Option<Vec<f64>>,
    /// [`State::Shared`].
    #[serde(deserialize_with = "reading::row")]
    pub shared: Vec<f64>,
    /// [`State::Invalid`]; without it, as a load, which must have it.
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
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::CompareExchange, Self::FetchAdd, Self::TestAndSet, Self::Swap];
}

/// What the atomic operations cost.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Atomics {
    /// Compare and swap.
    pub compare_exchange: Costs,
    /// Fetch and add; without it, as compare and swap.
    pub fetch_add: Option<Costs>,
    /// Test and set; without it, as compare and swap.
    pub test_and_set: Option<Costs>,
    /// Swap; without it, as compare and swap.
    pub swap: Option<Costs>,
}

/// A level of the caches.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Its size.
    #[serde(deserialize_with = "reading::size")]
    pub bytes: usize,
    /// How many lines of one set it holds.
    #[serde(deserialize_with = "reading::size")]
    pub ways: usize,
    /// What a load takes that finds its line there.
    #[serde(deserialize_with = "reading::positive")]
    pub latency_cycles: f64,
    /// How many hardware threads share one.
    #[serde(deserialize_with = "reading::count")]
    pub threads: u32,
    /// Whether it keeps copies of what another cache of its level has as the last that wrote it.
    #[serde(default = "foreign")]
    pub foreign: bool,
}

/// Without a word to the contrary a cache keeps everything.
const fn foreign() -> bool {
    true
}

/// The memory of a coherent machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// What a load takes from the nearest memory.
    #[serde(deserialize_with = "reading::positive")]
    pub load_cycles: f64,
    /// How many memory controllers there are.
    #[serde(deserialize_with = "reading::count")]
    pub controllers: u32,
    /// Bandwidth of a controller, in bytes a nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub gbps: f64,
}

/// Messages between cores in hardware: a buffer of each core, that several queues share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageQueue {
    /// Words of 8 bytes that the buffer of a core holds.
    #[serde(deserialize_with = "reading::size")]
    pub words: usize,
    /// Queues that share the buffer.
    #[serde(deserialize_with = "reading::count")]
    pub ways: u32,
    /// What a link of the mesh takes.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hop_cycles: f64,
    /// What sending and receiving a message take besides the links.
    #[serde(deserialize_with = "reading::not_negative")]
    pub message_cycles: f64,
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
        ensure(self.load.invalid.is_some(), "load", "missing `invalid`: what comes from memory")?;
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
        ensure(!self.caches.is_empty(), "cache", "expected one cache at least, found none")?;
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
    /// Checks that there is a number for each distance that a file names, and works out those of
    /// the others: of the distances between the last two, which lie on the line through theirs.
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
            let message = format!("expected {named} numbers, one a distance, found {}", row.len());
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

    /// The row of a state, if it has one itself or by another state's.
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

/// A part of a whole number of steps.
#[expect(clippy::cast_precision_loss, reason = "distances are few")]
fn ratio(step: usize, steps: usize) -> f64 {
    step as f64 / steps as f64
}

impl Coherent {
    /// How many hardware threads there are.
    pub fn threads(&self) -> u32 {
        self.layout.threads()
    }

    /// How far two threads are apart, as an index into [`Self::distances`].
    pub fn distance(&self, a: u32, b: u32) -> usize {
        self.layout.distance(a, b)
    }

    /// What loading costs a core that does not have the line, in nanoseconds.
    ///
    /// # Panics
    /// If there is no such distance.
    pub fn load_ns(&self, state: State, distance: usize) -> f64 {
        self.cost_ns(&self.load, state, distance)
    }

    /// What storing costs a core that does not have the line for itself, in nanoseconds.
    ///
    /// # Panics
    /// If there is no such distance.
    pub fn store_ns(&self, state: State, distance: usize) -> f64 {
        self.cost_ns(&self.store, state, distance)
    }

    /// What an atomic operation costs a core that does not have the line for itself, in
    /// nanoseconds.
    ///
    /// # Panics
    /// If there is no such distance.
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

    /// What loading costs that finds its line in a level of the own caches, in nanoseconds.
    ///
    /// # Panics
    /// If there is no such level, counted from 0.
    pub fn cache_ns(&self, level: usize) -> f64 {
        self.caches[level].latency_cycles / self.ghz
    }

    /// What loading costs from the nearest memory, in nanoseconds.
    pub fn memory_ns(&self) -> f64 {
        self.memory.load_cycles / self.ghz
    }

    fn cost_ns(&self, costs: &Costs, state: State, distance: usize) -> f64 {
        let row = costs.of(state).or_else(|| self.load.of(state));
        row.expect("a description says what loads cost in every state")[distance] / self.ghz
    }
}
