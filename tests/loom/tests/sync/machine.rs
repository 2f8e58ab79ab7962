//! The machine of the models. It runs the operations of an algorithm with loom's atomics, and
//! messages over the real mailboxes. It can remove one thing: an ordering, or an operation.

#![expect(unsafe_code, reason = "delays stores, and implements the machine of locks")]

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    convert::Infallible,
    future::{Future, ready},
    panic::Location,
    pin::pin,
    sync::{
        Arc,
        atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release},
    },
    task::{Context, Poll, Waker},
};

use consort_machine::{Line, Machine, Mailbox, Queue, Thread, UniqueNumbers, Until, Word};
use loom::sync::atomic::AtomicU64;

use crate::shared::{Shared, Site, Taken, address};

/// The first words of a new line, which may have any value: not a node's address or a state.
const NO_ADDRESS: u32 = 4096;
/// The file that sends messages. Only models of messages change it.
const MAILBOX: &str = "mailbox.rs";

/// Returns the atomic of a word. A changed algorithm may take 0 or a state for the address of a
/// node.
fn atomic(word: &Word) -> &AtomicU64 {
    assert!(address(word) > NO_ADDRESS as usize + 64, "the address of no node");
    word.atomic()
}

/// One thread's view of the machine. Its waits sleep inside themselves.
pub(crate) struct LoomMachine {
    thread: usize,
    shared: Arc<Shared>,
    /// Lines for the next uses, the most recently returned one first, as in the native machine.
    lines: RefCell<Vec<&'static Line>>,
    /// The number of lines that it has created.
    made: Cell<usize>,
    numbers: UniqueNumbers,
    /// The values of all words when a wait with a limit last began.
    seen: RefCell<HashMap<usize, u64>>,
    /// Relaxed stores that move after the next operation, if its release is removed.
    late: RefCell<Vec<(*const Word, u64)>>,
}

/// Returns the result of a future on the machine.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("waits sleep inside themselves"),
    }
}

impl LoomMachine {
    pub(crate) fn new(thread: usize, shared: &Arc<Shared>) -> Self {
        Self {
            thread,
            shared: Arc::clone(shared),
            lines: RefCell::default(),
            made: Cell::new(0),
            numbers: UniqueNumbers::new(),
            seen: RefCell::default(),
            late: RefCell::default(),
        }
    }

    /// Returns the addresses of the lines that it holds, and how many it has created.
    pub(crate) fn into_lines(self) -> (Vec<u64>, usize) {
        let lines = self.lines.into_inner();
        (lines.into_iter().map(Line::address).collect(), self.made.get())
    }

    /// Checks that each line that these machines have created is in exactly one of them.
    pub(crate) fn check_lines(kept: impl IntoIterator<Item = (Vec<u64>, usize)>) {
        let (mut lines, mut made) = (Vec::new(), 0);
        for (of_one, made_by_it) in kept {
            lines.extend(of_one);
            made += made_by_it;
        }
        assert_eq!(lines.len(), made, "lines are given as often as they are taken");
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), made, "each line has one owner");
    }

    fn is_taken(&self, site: Site, taken: Taken) -> bool {
        if site.file().ends_with(MAILBOX) != self.shared.changes_mailbox {
            return false;
        }
        self.shared.possible.lock().expect("no panic").insert((site, taken));
        self.shared.change == Some((site, taken))
    }

    /// Returns the ordering that remains of `order` at this site.
    fn left(&self, site: Site, order: Ordering) -> Ordering {
        match order {
            Acquire if self.is_taken(site, Taken::Acquire) => Relaxed,
            Release if self.is_taken(site, Taken::Release) => Relaxed,
            AcqRel if self.is_taken(site, Taken::Acquire) => Release,
            AcqRel if self.is_taken(site, Taken::Release) => Acquire,
            order => order,
        }
    }

    /// Performs the late stores.
    fn catch_up(&self) {
        for (word, value) in self.late.take() {
            // SAFETY: it is a word of a lock or of a leaked line; a model ends after its threads.
            self.store_now(unsafe { &*word }, value, Relaxed);
        }
    }

    fn store_now(&self, word: &Word, value: u64, order: Ordering) {
        if self.shared.stores_exchange {
            atomic(word).swap(value, order);
        } else {
            atomic(word).store(value, order);
        }
        self.shared.note(word, value);
    }

    /// Performs an operation with this ordering. Without its release, late stores come after it.
    fn operate<T>(&self, site: Site, order: Ordering, operation: impl FnOnce(Ordering) -> T) -> T {
        let left = self.left(site, order);
        if self.shared.change != Some((site, Taken::Release)) {
            self.catch_up();
        }
        let result = operation(left);
        self.catch_up();
        result
    }

    fn mailbox(&self) -> &Mailbox {
        &self.shared.mailboxes[self.thread]
    }
}

// SAFETY: values are in the words themselves, each thread has its own number, mailbox and lines, and
// each block of unique numbers has one thread.
unsafe impl Machine for LoomMachine {
    type Stop = Infallible;

    const MESSAGE_WORDS: usize = Mailbox::MESSAGE_WORDS;

    fn thread(&self) -> Thread {
        Thread(u32::try_from(self.thread).expect("few threads"))
    }

    fn numa_node(&self) -> u32 {
        u32::try_from(self.thread % 2).expect("one of two")
    }

    fn now_ns(&self) -> u64 {
        0
    }

    fn take_line(&self) -> &'static Line {
        self.lines.borrow_mut().pop().unwrap_or_else(|| {
            self.made.set(self.made.get() + 1);
            let line: &'static Line = Box::leak(Box::default());
            // Both must work: a value that is not a state, and the state 0.
            let second = if self.thread % 2 == 0 { NO_ADDRESS.into() } else { 0 };
            self.store_now(&line[0], NO_ADDRESS.into(), Relaxed);
            self.store_now(&line[1], second, Relaxed);
            line
        })
    }

    fn give_line(&self, line: &'static Line) {
        self.lines.borrow_mut().push(line);
    }

    fn unique(&self) -> u64 {
        // No thread takes a second block.
        self.numbers.take(|| self.thread as u64 + 1)
    }

    fn waiting_word(&self, _: &Word, number: u64) -> &Word {
        let words = &self.shared.waiting;
        &words[usize::try_from(UniqueNumbers::block(number)).expect("few threads") % words.len()]
    }

    #[track_caller]
    fn load(&self, word: &Word, order: Ordering) -> impl Future<Output = u64> {
        ready(self.operate(Location::caller(), order, |order| atomic(word).load(order)))
    }

    #[track_caller]
    fn store(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = ()> {
        let site = Location::caller();
        let is_late = matches!(self.shared.change, Some((_, Taken::Release)));
        if self.is_taken(site, Taken::Whole) {
            self.catch_up();
        } else if order == Relaxed && is_late {
            self.late.borrow_mut().push((word, value));
        } else {
            self.operate(site, order, |order| self.store_now(word, value, order));
        }
        ready(())
    }

    fn stream(&self, word: &Word, value: u64) -> impl Future<Output = ()> {
        self.store(word, value, Relaxed)
    }

    #[track_caller]
    fn swap(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(self.operate(Location::caller(), order, |order| {
            let old = atomic(word).swap(value, order);
            self.shared.note(word, value);
            old
        }))
    }

    #[track_caller]
    fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(self.operate(Location::caller(), order, |order| {
            let old = atomic(word).fetch_add(by, order);
            self.shared.note(word, old.wrapping_add(by));
            old
        }))
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> impl Future<Output = Result<u64, u64>> {
        let site = Location::caller();
        let succeeds = self.is_taken(site, Taken::Whole);
        let result = self.operate(site, order, |order| {
            let failure = if matches!(order, Acquire | AcqRel) { Acquire } else { Relaxed };
            let result = atomic(word).compare_exchange(current, new, order, failure);
            if result.is_ok() {
                self.shared.note(word, new);
            }
            if succeeds { Ok(current) } else { result }
        });
        ready(result)
    }

    #[track_caller]
    fn fence(&self, order: Ordering) -> impl Future<Output = ()> {
        self.operate(Location::caller(), order, |order| {
            if order != Relaxed {
                loom::sync::atomic::fence(order);
            }
        });
        ready(())
    }

    fn pause(&self, _: u64) -> impl Future<Output = ()> {
        ready(())
    }

    #[track_caller]
    fn wait_until(
        &self,
        word: &Word,
        until: Until,
    ) -> impl Future<Output = Result<u64, Infallible>> {
        let site = Location::caller();
        self.catch_up();
        let does_not_wait = self.is_taken(site, Taken::Whole);
        let order = self.left(site, Acquire);
        loop {
            let value = atomic(word).load(order);
            if until.holds(value) {
                return ready(Ok(value));
            } else if does_not_wait {
                return ready(Ok(if let Until::Equals(value) = until { value } else { 0 }));
            }
            self.shared.rest(word, |value| until.holds(value));
        }
    }

    #[track_caller]
    fn wait_until_time(
        &self,
        word: &Word,
        until: Until,
        _: u64,
    ) -> impl Future<Output = Result<Option<u64>, Infallible>> {
        self.catch_up();
        // Its time may be over whenever another thread has acted.
        self.shared
            .rest_until_change(&mut self.seen.borrow_mut(), word, |value| until.holds(value));
        let value = atomic(word).load(Acquire);
        ready(Ok(until.holds(value).then_some(value)))
    }

    #[track_caller]
    fn wake(&self, word: &Word) {
        if !self.is_taken(Location::caller(), Taken::Whole) {
            self.catch_up();
            self.shared.wake(word);
        }
    }

    #[track_caller]
    fn send(
        &self,
        to: Thread,
        queue: Queue,
        message: &[u64],
    ) -> impl Future<Output = Result<(), Infallible>> {
        if self.is_taken(Location::caller(), Taken::Whole) {
            self.catch_up();
            return ready(Ok(()));
        }
        let to = &self.shared.mailboxes[to.0 as usize];
        ready(block_on(to.send(self, || self.mailbox(), queue, message)))
    }

    #[track_caller]
    fn receive<const WORDS: usize>(
        &self,
        queue: Queue,
    ) -> impl Future<Output = Result<[u64; WORDS], Infallible>> {
        let does_not_wait = self.is_taken(Location::caller(), Taken::Whole);
        if does_not_wait && block_on(self.mailbox().is_empty(self, queue)) {
            return ready(Ok([0; WORDS]));
        }
        ready(block_on(self.mailbox().receive(self, queue)))
    }

    fn is_empty(&self, queue: Queue) -> impl Future<Output = bool> {
        ready(block_on(self.mailbox().is_empty(self, queue)))
    }

    #[track_caller]
    fn answer(&self, to: Thread, value: u64) -> impl Future<Output = ()> {
        if self.is_taken(Location::caller(), Taken::Whole) {
            self.catch_up();
        } else {
            block_on(self.shared.mailboxes[to.0 as usize].answer(self, value));
        }
        ready(())
    }

    #[track_caller]
    fn receive_answer(&self) -> impl Future<Output = Result<u64, Infallible>> {
        if self.is_taken(Location::caller(), Taken::Whole) {
            self.catch_up();
            return ready(Ok(0));
        }
        ready(block_on(self.mailbox().receive_answer(self)))
    }
}
