//! Threads: each obtains a number, a mailbox and lines when it first needs them. When it ends,
//! other threads may obtain them.

use std::{cell::Cell, sync::OnceLock};

use crate::{
    Line, Mailbox, Thread, UniqueNumbers,
    fork_safe::{Found, Mutex},
    limits::most_mappings,
    system::thread_exit::at_thread_exit,
    threads::MAPPINGS_OF_A_THREAD,
    wait::spin_budget::SpinBudget,
};

use super::lines::Lines;

/// The largest number of threads that use messages at the same time.
const MOST: usize = 1 << 14;

/// A number of threads that every system allows a process.
const SURE: usize = 1 << 12;

/// Returns how many threads may use messages at the same time: as many as the system lets start. A
/// thread takes [`MAPPINGS_OF_A_THREAD`] mappings, and aborts if it finds none left.
#[cold]
fn most() -> usize {
    static MOST_HERE: Found<usize> = Found::new();
    *MOST_HERE.get_or_find(|| {
        let fit = most_mappings().map_or(MOST, |all| (all - all / 16) / MAPPINGS_OF_A_THREAD);
        fit.clamp(SURE, MOST)
    })
}

/// The mailboxes of threads that receive messages. The next thread with the same number reuses it.
static MAILBOXES: [OnceLock<Box<Mailbox>>; MOST] = [const { OnceLock::new() }; MOST];

/// The numbers that no thread has at present, and the lowest number that was never used.
static FREE: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 0));

/// Returns the mailbox of the thread with this number.
#[inline]
pub(super) fn mailbox(thread: Thread) -> &'static Mailbox {
    MAILBOXES[thread.0 as usize].get_or_init(Box::default)
}

/// The state of the calling thread. Nothing in it needs a destructor, so it can be used until the
/// very end of the thread.
pub(super) struct ThreadState {
    thread: Cell<Option<(Thread, &'static Mailbox)>>,
    pub(super) lines: Lines,
    pub(super) numbers: UniqueNumbers,
    pub(super) budget: Cell<SpinBudget>,
    /// The address of the word that the last pending wait tested, and the time at which the wait
    /// ends regardless.
    pub(super) waits_for: Cell<(usize, Option<u64>)>,
    /// Whether the next pending wait makes the processor watch its word.
    pub(super) watches: Cell<bool>,
}

thread_local! {
    static THREAD: ThreadState = const {
        ThreadState {
            thread: Cell::new(None),
            lines: Lines::new(),
            numbers: UniqueNumbers::new(),
            budget: Cell::new(SpinBudget::for_guest()),
            waits_for: Cell::new((0, None)),
            watches: Cell::new(false),
        }
    };
}

/// Gives back what the calling thread has. The thread may still take more.
fn release_thread() {
    with_thread(|state| {
        state.lines.give_all();
        if let Some((thread, _)) = state.thread.take() {
            FREE.lock().0.push(thread.0);
        }
    });
}

/// Passes the state of the calling thread to `use_it`.
#[inline(always)]
pub(super) fn with_thread<R>(use_it: impl FnOnce(&ThreadState) -> R) -> R {
    THREAD.with(use_it)
}

impl ThreadState {
    /// Returns the thread's number and mailbox.
    ///
    /// # Panics
    /// When too many threads have one.
    #[inline]
    pub(super) fn thread(&self) -> (Thread, &'static Mailbox) {
        match self.thread.get() {
            Some(mine) => mine,
            None => self.enter(),
        }
    }

    #[cold]
    fn enter(&self) -> (Thread, &'static Mailbox) {
        at_thread_exit(release_thread);
        let number = {
            let (returned, first) = &mut *FREE.lock();
            returned.pop().unwrap_or_else(|| {
                let number = *first;
                let is_sure = (number as usize) < SURE;
                assert!(
                    is_sure || (number as usize) < most(),
                    "more than {} threads use messages or delegation at the same time: the limit \
                     is {MOST}, or less if vm.max_map_count is small",
                    most()
                );
                *first += 1;
                number
            })
        };
        let mine = (Thread(number), mailbox(Thread(number)));
        self.thread.set(Some(mine));
        mine
    }

    /// Takes a line for the thread's use.
    #[inline(always)]
    pub(super) fn take_line(&self) -> &'static Line {
        match self.lines.take() {
            Some(line) => line,
            None => {
                at_thread_exit(release_thread);
                self.lines.open();
                super::lines::more()
            }
        }
    }
}
