//! The machine that the program runs on.

#![expect(unsafe_code, reason = "locks are trusted to exclude, and rely on a machine for that")]

use std::{
    convert::Infallible,
    future::{Future, poll_fn, ready},
    sync::atomic::{
        Ordering::{self, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    task::Poll,
};

use consort_fabric::{Line, Machine, Queue, Thread, Until, Word};

use super::{
    ring::{LINE_WORDS, Ring},
    sleep,
    threads::{Inbox, inbox, me},
};
use crate::system::clock;

/// Processor cycles of one spin hint, roughly.
const CYCLES_PER_HINT: u64 = 40;
/// Words of a message's first line that are not the sender's: the queue and the number of words.
const HEAD: usize = 2;
/// How long a thread that waits for room sleeps before it takes in its own messages, in
/// nanoseconds.
const ROOM_NAP_NS: u64 = 100_000;

/// The machine that the program runs on, for any thread: atomics, and messages over cache lines.
///
/// A future on it never fails. [`block_on`](crate::block_on) drives one. A wait of any other driver
/// is pending until it is polled again: nothing wakes the task.
#[derive(Clone, Copy, Debug)]
pub struct NativeMachine(());

impl NativeMachine {
    /// The machine.
    ///
    /// # Safety
    /// It serves all threads of the program, and what a thread does with it concerns the others. So
    /// it is used by algorithms alone that give a line back once, after its last use; that send
    /// messages to queues of their own, and answer who asks them, once; and whose futures are
    /// driven to their end, one at a time on each thread.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The ordering of a compare-exchange that fails.
const fn on_failure(order: Ordering) -> Ordering {
    match order {
        Relaxed | Release => Relaxed,
        SeqCst => SeqCst,
        _ => Acquire,
    }
}

/// Notes the word that a pending wait looked at, for a thread that goes to sleep, and when the wait
/// ends without it.
fn pending<T>(word: &Word, end: Option<u64>) -> Poll<T> {
    me(|me| me.waits_for.set((sleep::address(word), end)));
    Poll::Pending
}

/// Waits until a word satisfies `until`.
fn reaches(word: &Word, until: Until) -> impl Future<Output = u64> {
    poll_fn(move |_| {
        let value = word.atomic().load(Acquire);
        if until.holds(value) { Poll::Ready(value) } else { pending(word, None) }
    })
}

/// The first line of the message that is next in the caller's ring, and its number.
#[inline]
fn next_head(inbox: &Inbox) -> Option<(u64, [u64; LINE_WORDS])> {
    let first = inbox.next[0].atomic().load(Relaxed);
    inbox.ring.is_full(first).then(|| (first, inbox.ring.read(first)))
}

/// Takes the message with this head from the caller's ring: gives its words to `keep`, which says
/// what becomes of them.
#[inline]
fn take<T>(
    inbox: &Inbox,
    (first, head): (u64, [u64; LINE_WORDS]),
    keep: impl FnOnce(&mut dyn Iterator<Item = u64>, usize) -> T,
) -> T {
    let words = usize::try_from(head[1]).unwrap_or(0);
    let after = first + Ring::lines_for(HEAD + words);
    let more = (first + 1..after).flat_map(|line| inbox.ring.read(line));
    let kept = keep(&mut head.into_iter().skip(HEAD).chain(more).take(words), words);
    for line in first..after {
        inbox.ring.empty(line);
        sleep::wake(inbox.ring.state(line));
    }
    inbox.next[0].atomic().store(after, Relaxed);
    kept
}

/// Puts the message with this head aside.
#[cold]
fn put_aside(inbox: &Inbox, first: u64, head: [u64; LINE_WORDS]) {
    let message = take(inbox, (first, head), |words, _| words.collect());
    inbox.early().push_back((Queue(head[0]), message));
    me(|me| me.has_early.set(true));
}

/// Takes a message for `queue` that came early.
#[cold]
fn take_early(inbox: &Inbox, queue: Queue) -> Option<Vec<u64>> {
    let mut early = inbox.early();
    let index = early.iter().position(|(to, _)| *to == queue)?;
    let (_, message) = early.remove(index)?;
    me(|me| me.has_early.set(!early.is_empty()));
    Some(message)
}

// SAFETY: words are atomics, a line is kept by one thread or in the pool, numbers are given under a
// lock, and a ring has one receiver, the thread with its number.
unsafe impl Machine for NativeMachine {
    type Stop = Infallible;

    const MESSAGE_WORDS: usize = Ring::MOST_WORDS - HEAD;

    #[inline]
    fn thread(&self) -> Thread {
        me(|me| me.thread().0)
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    #[inline(always)]
    fn take_line(&self) -> &'static Line {
        me(|me| me.take_line())
    }

    #[inline(always)]
    fn give_line(&self, line: &'static Line) {
        me(|me| me.lines.give(line));
    }

    #[inline(always)]
    fn load(&self, word: &Word, order: Ordering) -> impl Future<Output = u64> {
        ready(word.atomic().load(order))
    }

    #[inline(always)]
    fn store(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = ()> {
        word.atomic().store(value, order);
        ready(())
    }

    #[inline(always)]
    fn stream(&self, word: &Word, value: u64) -> impl Future<Output = ()> {
        word.atomic().store(value, Relaxed);
        ready(())
    }

    #[inline(always)]
    fn swap(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(word.atomic().swap(value, order))
    }

    #[inline(always)]
    fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(word.atomic().fetch_add(by, order))
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> impl Future<Output = Result<u64, u64>> {
        ready(word.atomic().compare_exchange(current, new, order, on_failure(order)))
    }

    #[inline(always)]
    fn fence(&self, order: Ordering) -> impl Future<Output = ()> {
        fence(order);
        ready(())
    }

    #[inline(always)]
    fn pause(&self, cycles: u64) -> impl Future<Output = ()> {
        for _ in 0..cycles.div_ceil(CYCLES_PER_HINT) {
            std::hint::spin_loop();
        }
        ready(())
    }

    #[inline(always)]
    async fn wait_until(&self, word: &Word, until: Until) -> Result<u64, Infallible> {
        Ok(reaches(word, until).await)
    }

    #[inline]
    async fn wait_until_time(
        &self,
        word: &Word,
        until: Until,
        at_ns: u64,
    ) -> Result<Option<u64>, Infallible> {
        let wait = poll_fn(|_| {
            let value = word.atomic().load(Acquire);
            if until.holds(value) {
                Poll::Ready(Some(value))
            } else if clock::now_ns() >= at_ns {
                Poll::Ready(None)
            } else {
                pending(word, Some(at_ns))
            }
        });
        Ok(wait.await)
    }

    #[inline(always)]
    fn wake(&self, word: &Word) {
        sleep::wake(word);
    }

    #[inline]
    async fn send(&self, to: Thread, queue: Queue, message: &[u64]) -> Result<(), Infallible> {
        let most = Self::MESSAGE_WORDS;
        assert!(
            message.len() <= most,
            "a message has {} words; at most {most} fit the queue",
            message.len()
        );
        let ring = &inbox(to).ring;
        let lines = Ring::lines_for(HEAD + message.len());
        let first = ring.take(lines);
        let mut rest = message;
        for line in first..first + lines {
            poll_fn(|_| {
                if ring.is_free(line) {
                    return Poll::Ready(());
                }
                // The receiver may itself wait for room here.
                let (_, mine) = me(|me| me.thread());
                while let Some((first, head)) = next_head(mine) {
                    put_aside(mine, first, head);
                }
                pending(ring.state(line), Some(clock::now_ns() + ROOM_NAP_NS))
            })
            .await;
            let mut words = [0; LINE_WORDS];
            let head = if line == first { HEAD } else { 0 };
            words[..head].copy_from_slice(&[queue.0, message.len() as u64][..head]);
            let (now, later) = rest.split_at(rest.len().min(LINE_WORDS - head));
            words[head..head + now.len()].copy_from_slice(now);
            ring.fill(line, &words[..head + now.len()]);
            rest = later;
        }
        (first..first + lines).rev().for_each(|line| ring.publish(line));
        sleep::wake(ring.state(first));
        Ok(())
    }

    #[inline]
    async fn receive<const WORDS: usize>(&self, queue: Queue) -> Result<[u64; WORDS], Infallible> {
        let (_, inbox) = me(|me| me.thread());
        let wrong = |words| -> [u64; WORDS] {
            panic!("a message has {words} words; its receiver takes {WORDS}")
        };
        let message = poll_fn(|_| {
            if me(|me| me.has_early.get())
                && let Some(message) = take_early(inbox, queue)
            {
                let words = message.len();
                return Poll::Ready(message.try_into().unwrap_or_else(|_| wrong(words)));
            }
            while let Some((first, head)) = next_head(inbox) {
                if Queue(head[0]) == queue {
                    return Poll::Ready(take(inbox, (first, head), |all, words| {
                        let message = [(); WORDS].map(|()| all.next().unwrap_or(0));
                        if words == WORDS { message } else { wrong(words) }
                    }));
                }
                put_aside(inbox, first, head);
            }
            pending(inbox.ring.state(inbox.next[0].atomic().load(Relaxed)), None)
        });
        Ok(message.await)
    }

    #[inline]
    fn is_empty(&self, queue: Queue) -> impl Future<Output = bool> {
        let (_, inbox) = me(|me| me.thread());
        while let Some((first, head)) = next_head(inbox) {
            if Queue(head[0]) == queue {
                return ready(false);
            }
            put_aside(inbox, first, head);
        }
        let early = me(|me| me.has_early.get());
        ready(!early || inbox.early().iter().all(|(to, _)| *to != queue))
    }

    #[inline]
    fn answer(&self, to: Thread, value: u64) -> impl Future<Output = ()> {
        let answer = &inbox(to).answer;
        answer[0].atomic().store(value, Relaxed);
        answer[1].atomic().store(1, Release); // pairs with the acquire in `receive_answer`
        sleep::wake(&answer[1]);
        ready(())
    }

    #[inline]
    async fn receive_answer(&self) -> Result<u64, Infallible> {
        let answer = &me(|me| me.thread()).1.answer;
        reaches(&answer[1], Until::Equals(1)).await;
        let value = answer[0].atomic().load(Relaxed);
        // The next answer comes only after a message of this thread, which releases this store.
        answer[1].atomic().store(0, Relaxed);
        Ok(value)
    }
}
