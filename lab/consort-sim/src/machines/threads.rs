//! The costs of threads that share words and send messages, in addition to the costs of lines: how
//! stores are buffered, where atomic operations are executed, and which lines are fetched in
//! advance.

use serde::{Deserialize, Serialize};

use super::reading::{self, Flaw, ensure};

/// How the threads of a coherent machine issue their operations on shared words.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// The cycles of the instructions around each operation on a word or a message.
    #[serde(deserialize_with = "reading::not_negative")]
    pub operation_cycles: f64,
    /// The cycles that a load adds when the core has the line: the part of its latency that is not
    /// hidden.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hit_cycles: f64,
    /// The cycles of an iteration of an empty loop.
    #[serde(deserialize_with = "reading::positive")]
    pub loop_cycles: f64,
    /// The cycles in which a program draws a random number, such as that of its pauses.
    #[serde(default, deserialize_with = "reading::not_negative")]
    pub random_cycles: f64,
    /// The cycles in which a thread takes a node of memory, or gives it back, in addition to the
    /// accesses to its pool.
    #[serde(default, deserialize_with = "reading::not_negative")]
    pub allocation_cycles: f64,
    /// Where atomic operations are executed.
    pub atomics: AtomicsAt,
    /// Whether stores are executed at the home of their line, too, so that no core owns a line.
    #[serde(default)]
    pub stores_at_home: bool,
    /// Whether a core then keeps its copy of a line to which it stores.
    #[serde(default = "keeps")]
    pub stores_keep_copies: bool,
    /// Whether a compare-exchange can work on two words of a line at once.
    #[serde(default)]
    pub pairs: bool,
    /// The order in which stores leave the store buffer.
    pub stores: StoreOrder,
    /// The entries of the store buffer.
    #[serde(deserialize_with = "reading::size")]
    pub store_buffer: usize,
    /// For each core after the first whose copy becomes invalid, a store or an atomic operation
    /// takes this many more cycles, and occupies the line that much longer.
    #[serde(default)]
    pub sharer_cycles: f64,
    /// Whether stores that wait in an in-order buffer already request their lines.
    #[serde(default)]
    pub claims_lines: bool,
    /// Whether a load that misses first waits until the thread's stores are acknowledged.
    #[serde(default)]
    pub loads_wait: bool,
    /// Whether a load that misses takes the line from the core that owns it, instead of sharing it.
    #[serde(default)]
    pub loads_take_lines: bool,
    /// The cycles of a fence, excluding what it waits for.
    #[serde(deserialize_with = "reading::not_negative")]
    pub fence_cycles: f64,
    /// A spinning thread notices within this many cycles that its copy of the word is invalid.
    #[serde(deserialize_with = "reading::not_negative")]
    pub spin_cycles: f64,
    /// The prefetcher; there is none by default.
    #[serde(default)]
    pub prefetch: Option<Prefetch>,
    /// The costs of stores past the caches. By default they are ordinary stores.
    #[serde(default)]
    pub streaming: Option<Streaming>,
}

/// Returns the default: a store leaves its core's copy valid.
const fn keeps() -> bool {
    true
}

/// Where atomic operations are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtomicsAt {
    /// In the cache of the core, which gets the line for that.
    Cache,
    /// In the cache of the tile that is the line's home, which executes one at a time. No core
    /// keeps a copy.
    Home,
}

/// The order in which stores leave the store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreOrder {
    /// One after the other, in the order in which they were issued.
    InOrder,
    /// All at the same time. Order needs a fence, which waits for acknowledgements.
    Overlapping,
}

impl Threads {
    /// Checks that the home of a line executes stores only if it executes atomic operations.
    pub(super) fn check(&self) -> Result<(), Flaw> {
        let has_homes = self.atomics == AtomicsAt::Home;
        let message = "expected `atomics = \"home\"`, because only such lines have homes";
        ensure(has_homes || !self.stores_at_home, "threads.stores_at_home", message)
    }
}

/// The prefetcher of a core, which works within pages.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// The number of accesses with the same stride that count as a pattern. With 0, a miss, or the
    /// first use of a prefetched line, fetches the next line.
    pub training: u32,
    /// The number of lines that it fetches ahead.
    #[serde(deserialize_with = "reading::count")]
    pub ahead: u32,
    /// Whether it fetches lines for writing if the previous ones were written.
    pub for_ownership: bool,
    /// Whether a miss also fetches the other line of an aligned pair.
    pub pairs: bool,
    /// The number of lines in a page.
    #[serde(deserialize_with = "reading::count")]
    pub page_lines: u32,
}

/// Stores past the caches, through write-combining buffers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// The number of buffers of a core.
    #[serde(deserialize_with = "reading::count")]
    pub buffers: u32,
    /// The cycles until a buffer is written to memory and is free again.
    #[serde(deserialize_with = "reading::positive")]
    pub cycles: f64,
    /// The factor by which that takes longer while another core spins on the line.
    #[serde(deserialize_with = "reading::positive")]
    pub spun_factor: f64,
}
