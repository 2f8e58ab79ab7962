//! Threads: each gets a number, an inbox and lines when it first needs them, and leaves them to
//! others when it ends.

use std::{
    cell::Cell,
    collections::VecDeque,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use consort_fabric::{Line, Queue, Thread};

use super::{lines::Lines, ring::Ring};
use crate::{progress::patience::Patience, system::thread_end::at_end_of_thread};

/// The most threads that use messages at the same time.
const MOST: usize = 1 << 14;

/// A message that was taken from the ring while its receiver looked for another one.
pub(super) type Early = (Queue, Vec<u64>);

/// What a thread that receives messages has. The next thread with the same number goes on with it.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) ring: Ring,
    /// Word 0: the number of the next line. Only the receiver uses it.
    pub(super) next: Line,
    /// Word 0: an answer. Word 1: 1 while the answer is there.
    pub(super) answer: Line,
    /// Messages that came early. Only the receiver uses them.
    early: Mutex<VecDeque<Early>>,
}

impl Inbox {
    pub(super) fn early(&self) -> MutexGuard<'_, VecDeque<Early>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static INBOXES: [OnceLock<Box<Inbox>>; MOST] = [const { OnceLock::new() }; MOST];

/// The numbers that are given to no thread at present, and the first that never was.
static FREE: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 0));

fn free() -> MutexGuard<'static, (Vec<u32>, u32)> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The inbox of a thread that has a number.
#[inline]
pub(super) fn inbox(thread: Thread) -> &'static Inbox {
    INBOXES[thread.0 as usize].get_or_init(Box::default)
}

/// What is known of the calling thread. Nothing in it needs a destructor, so it can be used until
/// the very end of the thread.
pub(super) struct Me {
    thread: Cell<Option<(Thread, &'static Inbox)>>,
    pub(super) lines: Lines,
    pub(super) patience: Cell<Patience>,
    /// The address of the word that the last pending wait looked at, and when the wait ends without
    /// it.
    pub(super) waits_for: Cell<(usize, Option<u64>)>,
    /// Whether messages came early.
    pub(super) has_early: Cell<bool>,
}

thread_local! {
    static ME: Me = const {
        Me {
            thread: Cell::new(None),
            lines: Lines::new(),
            patience: Cell::new(Patience::of_a_guest()),
            waits_for: Cell::new((0, None)),
            has_early: Cell::new(false),
        }
    };
}

/// Returns what the calling thread has. It may still take more.
fn give_back() {
    me(|me| {
        me.lines.give_all();
        if let Some((thread, _)) = me.thread.take() {
            free().0.push(thread.0);
        }
    });
}

/// What is known of the calling thread.
#[inline(always)]
pub(super) fn me<R>(use_it: impl FnOnce(&Me) -> R) -> R {
    ME.with(use_it)
}

impl Me {
    /// The thread's number and inbox.
    ///
    /// # Panics
    /// When too many threads have one.
    #[inline]
    pub(super) fn thread(&self) -> (Thread, &'static Inbox) {
        match self.thread.get() {
            Some(mine) => mine,
            None => self.enter(),
        }
    }

    #[cold]
    fn enter(&self) -> (Thread, &'static Inbox) {
        at_end_of_thread(give_back);
        let number = {
            let (returned, first) = &mut *free();
            returned.pop().unwrap_or_else(|| {
                let number = *first;
                assert!(
                    (number as usize) < MOST,
                    "more than {MOST} threads use messages or delegation at the same time"
                );
                *first += 1;
                number
            })
        };
        let mine = (Thread(number), inbox(Thread(number)));
        self.has_early.set(!mine.1.early().is_empty());
        self.thread.set(Some(mine));
        mine
    }

    /// A line for the thread's use.
    #[inline(always)]
    pub(super) fn take_line(&self) -> &'static Line {
        match self.lines.take() {
            Some(line) => line,
            None => {
                at_end_of_thread(give_back);
                self.lines.open();
                super::lines::more()
            }
        }
    }
}
