//! The state that the threads of a simulation share, and the state of each thread.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::{HashMap, VecDeque},
    fmt,
    rc::Rc,
    sync::{Mutex, PoisonError},
};

use consort_machine::{Line, Mailbox, UniqueNumbers, Until, Word};

use super::{
    costs::Costs,
    lines::Lines,
    sections::PrivateSections,
    tally::{Stall, Tally},
    traffic::{Message, Traffic, TrafficItem, Transaction},
};
use crate::engine::{Engine, Time, What};

/// The lines that no simulation uses at the moment.
static POOL: Mutex<Vec<&'static Line>> = Mutex::new(Vec::new());

/// The event that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A word that must satisfy a condition. Lines are numbered as they were first touched.
    Word {
        /// The number of the line.
        line: u32,
        /// The number of the word on the line.
        place: u8,
        /// The condition.
        until: Until,
        /// The value that the thread has seen.
        value: u64,
    },
    /// A message in this queue.
    Message(u64),
    /// An answer.
    Answer,
    /// Room for a message to this thread.
    Room(u32),
    /// Its own stores or a line. The machine always serves these.
    Memory,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word { line, place, until, value } => {
                write!(f, "word {place} of line {line}, which is {value}, to be {until:?}")
            }
            Self::Message(queue) => write!(f, "a message in queue {queue:#x}"),
            Self::Answer => f.write_str("an answer"),
            Self::Room(to) => write!(f, "room for a message to thread {to}"),
            Self::Memory => f.write_str("its own stores or a line"),
        }
    }
}

/// A line that a core's prefetcher has requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) line: u32,
    pub(super) transaction: u32,
    /// When it arrives, once known.
    pub(super) done: Option<Time>,
}

/// A page in which a core's prefetcher looks for a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// The first line of the page.
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) stride: i64,
    /// The number of accesses with this stride.
    pub(super) run: u32,
    /// The farthest line that was fetched, counted in strides from `last`.
    pub(super) fetched: i64,
    pub(super) written: bool,
}

/// The state of a core.
#[derive(Debug, Default)]
pub(super) struct Core {
    /// The time when the core's tile can execute its next atomic operation, if lines' homes do so.
    pub(super) atomics_free: Cell<Time>,
    pub(super) fetches: RefCell<Vec<Fetch>>,
    /// The lines that were fetched in advance and have not been used yet, the newest first.
    pub(super) unused: RefCell<VecDeque<u32>>,
    /// The pages, the most recently used one last.
    pub(super) pages: RefCell<Vec<Page>>,
}

/// The messages that have arrived for a thread.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) queues: HashMap<Option<u64>, VecDeque<Vec<u64>>>,
    pub(super) words: usize,
    /// Messages that the network holds because there is no room.
    pub(super) backed_up: VecDeque<Message>,
}

impl Inbox {
    /// Accepts a message.
    pub(super) fn admit(&mut self, message: Message) {
        self.words += message.words.len();
        self.queues.entry(message.queue).or_default().push_back(message.words);
    }
}

/// The state of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    pub(super) core: u32,
    /// The thread's own time, which is ahead of the engine's time while it computes.
    pub(super) clock: Cell<Time>,
    pub(super) tally: RefCell<Tally>,
    /// The time when the data that it waits for has arrived, once the line has served it.
    pub(super) served: Cell<Option<Time>>,
    /// Its stores that no other thread sees yet, in the order in which they were issued.
    pub(super) unseen: RefCell<VecDeque<u32>>,
    /// The unseen stores that wait until they are the first.
    pub(super) held: RefCell<Vec<u32>>,
    /// The number of its stores that are not acknowledged yet.
    pub(super) stores: Cell<usize>,
    pub(super) streams: Cell<usize>,
    /// The number of messages of this thread that the network holds.
    pub(super) backed_up: Cell<usize>,
    pub(super) inbox: RefCell<Inbox>,
    pub(super) waits_for: Cell<Option<WaitsFor>>,
    /// Whether it waits for other threads, and therefore does not stall.
    pub(super) idles: Cell<bool>,
    /// Whether the simulation may end without it.
    pub(super) is_server: Cell<bool>,
    pub(super) lines: RefCell<Vec<&'static Line>>,
    pub(super) numbers: UniqueNumbers,
    /// The mailbox for incoming messages, if the machine has no queues for them.
    pub(super) mailbox: RefCell<Option<Rc<Mailbox>>>,
}

/// The whole state of a simulation.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) costs: Costs,
    pub(super) lines: Lines,
    pub(super) threads: Vec<ThreadState>,
    pub(super) cores: Vec<Core>,
    pub(super) traffic: RefCell<Traffic>,
    /// The largest random delay of an operation.
    pub(super) random_delay: Time,
    /// The sections whose data only sections access, if there are such.
    pub(super) sections: Option<PrivateSections>,
    /// All lines taken from the pool.
    taken: RefCell<Vec<&'static Line>>,
    /// The number of blocks of unique numbers that threads have taken.
    blocks: Cell<u64>,
    /// The lines at which threads wait by unique numbers, by their indexes.
    waiting: RefCell<HashMap<usize, &'static Line>>,
}

impl World {
    /// Creates a world with threads on these cores.
    pub(super) fn new(
        engine: Engine,
        costs: Costs,
        cores: &[u32],
        random_delay: Time,
        sections: Option<PrivateSections>,
    ) -> Self {
        let thread = |&core| ThreadState { core, ..ThreadState::default() };
        Self {
            engine,
            lines: Lines::new(if costs.atomics_at_home { costs.cores() } else { 0 }),
            threads: cores.iter().map(thread).collect(),
            cores: (0..costs.cores()).map(|_| Core::default()).collect(),
            traffic: RefCell::default(),
            random_delay,
            sections,
            costs,
            taken: RefCell::default(),
            blocks: Cell::default(),
            waiting: RefCell::default(),
        }
    }

    pub(super) fn thread(&self, thread: u32) -> &ThreadState {
        &self.threads[thread as usize]
    }

    pub(super) fn tally(&self, thread: u32) -> RefMut<'_, Tally> {
        self.thread(thread).tally.borrow_mut()
    }

    pub(super) fn transaction(&self, number: u32) -> RefMut<'_, Transaction> {
        RefMut::map(self.traffic.borrow_mut(), |traffic| traffic.transaction(number))
    }

    /// Sends something that arrives at the time `at`. Returns its number.
    pub(super) fn dispatch(&self, one: TrafficItem, at: Time) -> u32 {
        let number = self.traffic.borrow_mut().add(one);
        self.engine.at(at + self.late(), What::Arrive(number));
        number
    }

    /// Returns a random delay.
    pub(super) fn late(&self) -> Time {
        self.engine.roll_below(self.random_delay)
    }

    /// Records that a thread has stalled for a cause from its clock until a time.
    pub(super) fn stall(&self, thread: u32, cause: Stall, until: Time) {
        let state = self.thread(thread);
        let time = until.saturating_sub(state.clock.get());
        state.clock.set(state.clock.get() + time);
        let mut tally = state.tally.borrow_mut();
        if state.idles.get() {
            tally.idle += time;
        } else {
            tally.stalled[cause as usize] += time;
        }
    }

    /// Returns a word's line, and the word's place on it.
    pub(super) fn find(&self, word: &Word, thread: u32) -> (u32, u8) {
        self.lines.find(word, self.thread(thread).core)
    }

    /// Returns the mailbox of a thread. Its home is where the thread runs.
    pub(super) fn mailbox(&self, thread: u32) -> Rc<Mailbox> {
        let make = || {
            let mailbox = Mailbox::default();
            mailbox.lines().flat_map(|line| line.iter()).for_each(|word| {
                self.find(word, thread);
            });
            Rc::new(mailbox)
        };
        Rc::clone(self.thread(thread).mailbox.borrow_mut().get_or_insert_with(make))
    }

    /// Returns a line for a thread: one that it has returned, or one of zeros.
    pub(super) fn take_line(&self, thread: u32) -> &'static Line {
        if let Some(kept) = self.thread(thread).lines.borrow_mut().pop() {
            return kept;
        }
        self.new_line(thread)
    }

    /// Returns a line of zeros. Its home is where the thread runs.
    fn new_line(&self, thread: u32) -> &'static Line {
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let line = pooled.unwrap_or_else(|| Box::leak(Box::default()));
        self.taken.borrow_mut().push(line);
        for word in line.iter() {
            let (number, place) = self.find(word, thread);
            self.lines.at(number).set(place, word, 0);
        }
        line
    }

    /// Returns the number of a block that no thread has used.
    pub(super) fn next_block(&self) -> u64 {
        self.blocks.set(self.blocks.get() + 1);
        self.blocks.get()
    }

    /// Returns the word for an object and a unique number.
    pub(super) fn waiting_word(&self, object: &Word, number: u64, thread: u32) -> &'static Word {
        let (line, place) = self.find(object, thread);
        let index = UniqueNumbers::index(u64::from(line) * 8 + u64::from(place), number);
        let mut lines = self.waiting.borrow_mut();
        &lines.entry(index).or_insert_with(|| self.new_line(thread))[0]
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let taken = self.taken.get_mut().drain(..);
        POOL.lock().unwrap_or_else(PoisonError::into_inner).extend(taken);
    }
}
