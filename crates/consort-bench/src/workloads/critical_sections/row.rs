//! The rows of the tables: an object under each lock and scheme, with its name.

use std::{collections::VecDeque, sync::atomic::AtomicU64, time::Duration};

use anyhow::Result;
use consort_sync::{
    Delegate, Mutex,
    delegation::{CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, ShmServer},
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, TestAndSet, Ticket},
    objects::{self, Lcrq, Treiber, WordContainer},
};
use crossbeam_queue::{ArrayQueue, SegQueue};

use super::{
    block::{Block, Setting, block, uncontended_ns},
    containers::{Balanced, TwoSchemeQueue, WithServers},
    counter::{ByMessages, BySlots, BySlotsWithBackoff, Counter, Numbers, WithFallback},
    detached::{Batched, Detached},
};

consort_fabric::named_enum! {
    /// The subject of a comparison.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Subject {
        /// Locks.
        Lock = "lock",
        /// Schemes of delegation and combining.
        Delegate = "delegate",
        /// Locks and schemes.
        Counter = "counter",
        /// Stacks.
        Stack = "stack",
        /// Queues.
        Queue = "queue",
    }
}

impl Subject {
    /// Returns whether operations are increments.
    #[must_use]
    pub const fn increments(self) -> bool {
        !matches!(self, Self::Stack | Self::Queue)
    }

    /// Returns the rows that may serve a critical section of these threads on these cores: each
    /// operation is a section that returns its result. A server needs a core that the threads do
    /// not use, except for the default server, which otherwise uses a lock. The first row is the
    /// default.
    pub(super) fn sections(threads: usize, cores: usize) -> Vec<&'static Row> {
        let fits = |row: &&Row| {
            let has_core = !row.has_server || row.name == DEFAULT_SERVER || threads < cores;
            row.has_result && row.name != FETCH_ADD && has_core
        };
        LOCKS.iter().chain(SCHEMES).chain(PEERS).filter(fits).collect()
    }

    /// Returns the rows, including the one with which the others are compared. An addition by the
    /// processor is included only if an operation is one increment.
    pub(super) fn rows(self, increments: usize) -> Vec<&'static Row> {
        let (locks, schemes, peers): (&[Row], &[Row], &[Row]) = match self {
            Self::Lock => (LOCKS, &[], PEERS),
            Self::Delegate => (&[], SCHEMES, PEERS),
            Self::Counter => (LOCKS, SCHEMES, PEERS),
            Self::Stack => (&STACKS, MORE_STACKS, STACK_PEERS),
            Self::Queue => (&QUEUES, MORE_QUEUES, QUEUE_PEERS),
        };
        let peers = peers.iter().filter(|row| match row.name {
            FETCH_ADD => increments == 1,
            REFERENCE => true,
            _ => self != Self::Delegate,
        });
        locks.iter().chain(schemes).chain(peers).collect()
    }
}

/// The row with which the others are compared.
pub(super) const REFERENCE: &str = "parking_lot Mutex";
/// The row of the default scheme of a server.
pub(super) const DEFAULT_SERVER: &str = "FallbackServer";
/// The row that is not a critical section.
const FETCH_ADD: &str = "fetch_add";

/// An object under a lock or a scheme.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) is_peer: bool,
    /// Whether it needs a separate thread.
    pub(super) has_server: bool,
    /// Whether an operation returns its result before the next one begins.
    pub(super) has_result: bool,
    /// Measures one block of contention.
    pub(super) block: fn(&Setting) -> Result<Block>,
    /// Samples the time of an operation of a single thread, in nanoseconds.
    pub(super) uncontended_ns: fn(usize, Duration) -> Result<Vec<f64>>,
}

const fn ours<C: Counter>(name: &'static str) -> Row {
    let (block, uncontended_ns) = (block::<C>, uncontended_ns::<C>);
    Row { name, is_peer: false, has_server: false, has_result: true, block, uncontended_ns }
}

const fn server<C: Counter>(name: &'static str) -> Row {
    Row { has_server: true, ..ours::<C>(name) }
}

const fn without_result(row: Row) -> Row {
    Row { has_result: false, ..row }
}

const fn peer<C: Counter>(name: &'static str) -> Row {
    Row { is_peer: true, ..ours::<C>(name) }
}

/// The locks; the first is the default.
pub(super) const LOCKS: &[Row] = &[
    ours::<Mutex<Numbers, Handoff>>("Handoff, default"),
    ours::<Mutex<Numbers, TestAndSet>>("TestAndSet"),
    ours::<Mutex<Numbers, Ticket>>("Ticket"),
    ours::<Mutex<Numbers, Mcs>>("Mcs"),
    ours::<Mutex<Numbers, Clh>>("Clh"),
    ours::<Mutex<Numbers, Cna>>("Cna"),
    ours::<Mutex<Numbers, Hapax>>("Hapax"),
    ours::<Mutex<Numbers, HybLock>>("HybLock"),
];

/// The schemes; the first is the default.
pub(super) const SCHEMES: &[Row] = &[
    ours::<Delegate<Numbers, Locked<Handoff>>>("Locked, default"),
    ours::<Delegate<Numbers, CcSynch>>("CcSynch"),
    ours::<Delegate<Numbers, HSynch>>("HSynch"),
    ours::<Delegate<Numbers, HybComb>>("HybComb"),
    server::<WithFallback>(DEFAULT_SERVER),
    server::<ByMessages>("MpServer"),
    server::<BySlots>("ShmServer"),
    server::<BySlotsWithBackoff>("ShmServer, backoff"),
    without_result(ours::<Detached<Delegate<Numbers, Locked<Handoff>>>>("Locked, detached")),
    without_result(ours::<Batched<Delegate<Numbers, Locked<Handoff>>>>("Locked, batch")),
    without_result(ours::<Batched<Delegate<Numbers, CcSynch>>>("CcSynch, batch")),
    without_result(server::<Detached<WithFallback>>("FallbackServer, detached")),
    without_result(server::<Batched<WithFallback>>("FallbackServer, batch")),
    without_result(server::<Detached<ByMessages>>("MpServer, detached")),
    without_result(server::<Batched<ByMessages>>("MpServer, batch")),
];

const PEERS: &[Row] = &[
    peer::<parking_lot::Mutex<Numbers>>(REFERENCE),
    peer::<parking_lot::FairMutex<Numbers>>("parking_lot Fair"),
    peer::<std::sync::Mutex<Numbers>>("std Mutex"),
    peer::<mcslock::raw::yields::Mutex<Numbers>>("mcslock"),
    peer::<AtomicU64>(FETCH_ADD),
];

type Stacked<S> = Balanced<WordContainer<objects::Stack<S>>>;
type ServedStack<S> = Balanced<WithServers<WordContainer<objects::Stack<S>>>>;
type Queued<S> = Balanced<WordContainer<objects::Queue<S>>>;
type ServedQueue<S> = Balanced<WithServers<WordContainer<objects::Queue<S>>>>;
type QueuedOfTwo<S> = Balanced<TwoSchemeQueue<S>>;

/// A list of nodes under each lock and each scheme.
macro_rules! under_all {
    ($container:ident, $served:ident) => {
        [
            ours::<$container<Locked<Handoff>>>("Handoff"),
            ours::<$container<Locked<TestAndSet>>>("TestAndSet"),
            ours::<$container<Locked<Ticket>>>("Ticket"),
            ours::<$container<Locked<Mcs>>>("Mcs"),
            ours::<$container<Locked<Clh>>>("Clh"),
            ours::<$container<Locked<Cna>>>("Cna"),
            ours::<$container<Locked<Hapax>>>("Hapax"),
            ours::<$container<Locked<HybLock>>>("HybLock"),
            ours::<$container<CcSynch>>("CcSynch"),
            ours::<$container<HSynch>>("HSynch"),
            ours::<$container<HybComb>>("HybComb"),
            server::<$served<FallbackServer>>("FallbackServer"),
            server::<$served<MpServer>>("MpServer"),
            server::<$served<ShmServer>>("ShmServer"),
        ]
    };
}

const STACKS: [Row; 14] = under_all!(Stacked, ServedStack);
const QUEUES: [Row; 14] = under_all!(Queued, ServedQueue);

const MORE_STACKS: &[Row] = &[
    ours::<Balanced<consort_sync::Stack<u64>>>("Stack, default"),
    ours::<Balanced<WordContainer<Treiber>>>("Treiber"),
];

const MORE_QUEUES: &[Row] = &[
    ours::<QueuedOfTwo<Locked<Handoff>>>("Handoff, 2 locks"),
    ours::<QueuedOfTwo<Locked<Mcs>>>("Mcs, 2 locks"),
    ours::<QueuedOfTwo<CcSynch>>("CcSynch, 2 combiners"),
    ours::<Balanced<consort_sync::Queue<u64>>>("Queue, default"),
    ours::<Balanced<WordContainer<Lcrq>>>("Lcrq"),
];

const STACK_PEERS: &[Row] = &[
    peer::<Balanced<parking_lot::Mutex<Vec<u64>>>>(REFERENCE),
    peer::<Balanced<std::sync::Mutex<Vec<u64>>>>("std Mutex"),
];

const QUEUE_PEERS: &[Row] = &[
    peer::<Balanced<parking_lot::Mutex<VecDeque<u64>>>>(REFERENCE),
    peer::<Balanced<std::sync::Mutex<VecDeque<u64>>>>("std Mutex"),
    peer::<Balanced<SegQueue<u64>>>("SegQueue"),
    peer::<Balanced<ArrayQueue<u64>>>("ArrayQueue"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_return_results_and_servers_but_the_default_need_a_core() {
        let names = |threads, cores| -> Vec<&'static str> {
            Subject::sections(threads, cores).iter().map(|row| row.name).collect()
        };
        let servers = |names: &[&'static str]| -> Vec<&str> {
            names.iter().copied().filter(|name| name.contains("Server")).collect()
        };
        let (full, spare) = (names(2, 2), names(2, 3));
        assert_eq!(full[0], LOCKS[0].name);
        let is_other = |name: &&str| name.contains("batch") || name.contains("detached");
        assert!(!spare.iter().any(|name| is_other(name) || *name == FETCH_ADD), "{spare:?}");
        assert_eq!(servers(&full), [DEFAULT_SERVER]);
        assert_eq!(servers(&names(32, 2)), [DEFAULT_SERVER]);
        assert_eq!(servers(&spare).len(), 4);
        assert!(full.contains(&"CcSynch") && full.contains(&REFERENCE));
    }

    #[test]
    fn each_subject_has_its_rows_and_the_reference() {
        let names = |subject: Subject, increments| -> Vec<&str> {
            subject.rows(increments).iter().map(|row| row.name).collect()
        };
        let lengths = Subject::EVERY.map(|subject| names(subject, 1).len());
        assert_eq!(lengths, [13, 17, 28, 18, 23]);
        for subject in Subject::EVERY {
            assert!(names(subject, 1).contains(&REFERENCE));
            assert_eq!(names(subject, 1).contains(&FETCH_ADD), subject.increments());
            assert!(!names(subject, 2).contains(&FETCH_ADD));
        }
    }
}
