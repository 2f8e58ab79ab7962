//! The state that the threads of a model share: their messages, the change, and the sleepers.

use std::{
    collections::{BTreeSet, HashMap},
    panic::Location,
    sync::{Arc, Mutex},
};

use consort_machine::{Mailbox, Word};

/// The place where an algorithm calls an operation of its machine.
pub(crate) type Site = &'static Location<'static>;

/// The part that is removed at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taken {
    /// No later load sees what others did before they released it.
    Acquire,
    /// Earlier stores may be seen after it.
    Release,
    /// The operation itself: a store or a message that is not sent, a wait that does not wait, an
    /// exchange that claims to succeed.
    Whole,
}

/// A change of an algorithm.
pub(crate) type Change = (Site, Taken);

/// The changes that are possible at the sites that a model has reached.
pub(crate) type Changes = Arc<Mutex<BTreeSet<Change>>>;

/// Instead of the address of a word: the thread waits for a change of any word.
const ANY: usize = 0;

/// The state that the threads of a model share. Parts that are not loom's do not change
/// independently: loom only switches threads where they use its atomics.
pub(crate) struct Shared {
    pub(crate) mailboxes: Vec<Mailbox>,
    /// The words at which threads wait by unique numbers. Of three threads, two share a word.
    pub(crate) waiting: [Word; 2],
    pub(crate) stores_exchange: bool,
    /// Whether messages themselves are modelled, rather than their users.
    pub(crate) changes_mailbox: bool,
    pub(crate) change: Option<Change>,
    pub(crate) possible: Changes,
    /// The last value of each word, by its address; 0 if there is none.
    last: Mutex<HashMap<usize, u64>>,
    /// The sleeping threads, each with the address of the word for which it waits.
    sleepers: Mutex<Vec<(usize, loom::thread::Thread)>>,
}

pub(crate) fn address(word: &Word) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Shared {
    /// Loom may swap an exchange and a later store to the same word. With `stores_exchange`, stores
    /// are exchanges.
    pub(crate) fn new(
        threads: usize,
        stores_exchange: bool,
        change: Option<Change>,
        possible: &Changes,
    ) -> Self {
        Self {
            mailboxes: (0..threads).map(|_| Mailbox::default()).collect(),
            waiting: Default::default(),
            stores_exchange,
            changes_mailbox: false,
            change,
            possible: Arc::clone(possible),
            last: Mutex::default(),
            sleepers: Mutex::default(),
        }
    }

    /// Creates the state for a model of messages.
    pub(crate) fn of_messages(threads: usize, change: Option<Change>, possible: &Changes) -> Self {
        Self { changes_mailbox: true, ..Self::new(threads, false, change, possible) }
    }

    /// Records that a word has a new value.
    pub(crate) fn note(&self, word: &Word, value: u64) {
        self.last.lock().expect("no panic").insert(address(word), value);
        self.wake_at(ANY);
    }

    /// Waits until the word may have another value than one that does not satisfy `holds`. If it
    /// does not have one yet, sleeps until the word is woken.
    pub(crate) fn rest(&self, word: &Word, holds: impl Fn(u64) -> bool) {
        let last = self.last.lock().expect("no panic").get(&address(word)).copied();
        if holds(last.unwrap_or(0)) {
            loom::thread::yield_now(); // and load a newer value
        } else {
            let sleeper = (address(word), loom::thread::current());
            self.sleepers.lock().expect("no panic").push(sleeper);
            loom::thread::park();
        }
    }

    /// Sleeps until another thread changes a word, if none has since the caller was last here and
    /// this word does not satisfy `holds`.
    pub(crate) fn rest_until_change(
        &self,
        seen: &mut HashMap<usize, u64>,
        word: &Word,
        holds: impl Fn(u64) -> bool,
    ) {
        let last = self.last.lock().expect("no panic").clone();
        if *seen == last && !holds(last.get(&address(word)).copied().unwrap_or(0)) {
            self.sleepers.lock().expect("no panic").push((ANY, loom::thread::current()));
            loom::thread::park();
        } else {
            *seen = last;
            loom::thread::yield_now(); // and load newer values
        }
    }

    pub(crate) fn wake(&self, word: &Word) {
        self.wake_at(address(word));
    }

    fn wake_at(&self, address: usize) {
        let is_awake = |(word_of_it, _): &(usize, _)| *word_of_it == address;
        let woken: Vec<_> =
            self.sleepers.lock().expect("no panic").extract_if(.., |it| is_awake(it)).collect();
        woken.into_iter().for_each(|(_, thread)| thread.unpark());
    }
}
