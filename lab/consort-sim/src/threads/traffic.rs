//! Transactions on lines and messages in transit.

use crate::machines::AtomicOp;

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A copy for a load, which waits for it.
    Load,
    /// An atomic operation, which waits for it.
    Atomic(AtomicOp),
    /// A store of the store buffer.
    Store,
    /// A copy that no thread waits for yet. It is writable if `own` is set.
    Prefetch { own: bool },
    /// A store past the caches.
    Stream,
}

/// A transaction on a line.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) kind: Kind,
    pub(super) thread: u32,
    pub(super) core: u32,
    pub(super) line: u32,
    /// The part of its cost that was spent before it reached the line.
    pub(super) travelled: u64,
    /// The places of the stored words on the line, in order.
    pub(super) places: Vec<u8>,
    /// Whether the thread's earlier stores come first.
    pub(super) ordered: bool,
    /// The threads that wait for this prefetch.
    pub(super) joined: Vec<u32>,
    /// Whether the line has served it.
    pub(super) served: bool,
    /// Whether the thread's next store is served together with it.
    pub(super) followed: bool,
}

/// A message in transit.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The queue; `None` for an answer.
    pub(super) queue: Option<u64>,
    pub(super) words: Vec<u64>,
}

/// A transaction or a message in transit.
#[derive(Debug)]
pub(super) enum TrafficItem {
    Transaction(Transaction),
    Message(Message),
    Nothing,
}

/// All transactions and messages in transit, by number. Numbers are reused.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    all: Vec<TrafficItem>,
    free: Vec<u32>,
}

impl Traffic {
    pub(super) fn add(&mut self, one: TrafficItem) -> u32 {
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = one;
            return number;
        }
        self.all.push(one);
        u32::try_from(self.all.len() - 1).expect("few transactions and messages")
    }

    /// Returns a transaction.
    pub(super) fn transaction(&mut self, number: u32) -> &mut Transaction {
        match &mut self.all[number as usize] {
            TrafficItem::Transaction(transaction) => transaction,
            other => unreachable!("{other:?} is not a transaction"),
        }
    }

    pub(super) fn is_message(&self, number: u32) -> bool {
        matches!(self.all[number as usize], TrafficItem::Message(_))
    }

    /// Removes a transaction or message that has arrived.
    pub(super) fn take(&mut self, number: u32) -> TrafficItem {
        self.free.push(number);
        std::mem::replace(&mut self.all[number as usize], TrafficItem::Nothing)
    }
}
