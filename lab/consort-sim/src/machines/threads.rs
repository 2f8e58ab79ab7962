//! What threads that share words and send messages need besides the costs of lines: how stores are
//! buffered, where atomic operations are executed, what is fetched ahead.

use serde::{Deserialize, Serialize};

use super::reading;

/// How the threads of a coherent machine issue their operations on shared words.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// The cycles of the instructions around each operation on a word or a message.
    #[serde(deserialize_with = "reading::not_negative")]
    pub operation_cycles: f64,
    /// The cycles that a load adds when the core has the line: what is not hidden of its latency.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hit_cycles: f64,
    /// The cycles of an iteration of an empty loop.
    #[serde(deserialize_with = "reading::positive")]
    pub loop_cycles: f64,
    /// Where atomic operations are executed.
    pub atomics: AtomicsAt,
    /// Whether two words of a line can be compared and exchanged at once.
    #[serde(default)]
    pub pairs: bool,
    /// The order in which stores leave the store buffer.
    pub stores: StoreOrder,
    /// The entries of the store buffer.
    #[serde(deserialize_with = "reading::size")]
    pub store_buffer: usize,
    /// The cycles that a store or an atomic operation takes longer, and occupies the line longer,
    /// for each core after the first whose copy becomes invalid.
    #[serde(default)]
    pub sharer_cycles: f64,
    /// Whether stores that wait in an in-order buffer ask for their lines already.
    #[serde(default)]
    pub claims_lines: bool,
    /// The cycles of a fence, without what it waits for.
    #[serde(deserialize_with = "reading::not_negative")]
    pub fence_cycles: f64,
    /// A thread that spins finds its copy of the word invalid after at most so many cycles.
    #[serde(deserialize_with = "reading::not_negative")]
    pub spin_cycles: f64,
    /// What is fetched before it is asked for; nothing if not given.
    #[serde(default)]
    pub prefetch: Option<Prefetch>,
    /// Stores past the caches; if not given, they are ordinary ones.
    #[serde(default)]
    pub streaming: Option<Streaming>,
}

/// Where atomic operations are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtomicsAt {
    /// In the cache of the core, which gets the line for that.
    Cache,
    /// In the cache of the tile that is the line's home; no core keeps a copy.
    Home,
}

/// The order in which stores leave the store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreOrder {
    /// One after the other, as they were issued.
    InOrder,
    /// All at the same time: order needs a fence, which waits for acknowledgements.
    Overlapping,
}

/// The prefetcher of a core, which works within pages.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// The accesses with the same stride that it takes for a pattern. With 0, a miss, and the first
    /// use of a line that was fetched in advance, have the next one fetched.
    pub training: u32,
    /// The lines that it fetches ahead.
    #[serde(deserialize_with = "reading::count")]
    pub ahead: u32,
    /// Whether it fetches lines for writing where those before were written.
    pub for_ownership: bool,
    /// Whether a miss fetches the other line of an aligned pair too.
    pub pairs: bool,
    /// The lines of a page.
    #[serde(deserialize_with = "reading::count")]
    pub page_lines: u32,
}

/// Stores past the caches, through write-combining buffers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// The buffers of a core.
    #[serde(deserialize_with = "reading::count")]
    pub buffers: u32,
    /// The cycles until a buffer is written to memory and free again.
    #[serde(deserialize_with = "reading::positive")]
    pub cycles: f64,
    /// The factor by which that takes longer while another core spins on the line.
    #[serde(deserialize_with = "reading::positive")]
    pub spun_factor: f64,
}
