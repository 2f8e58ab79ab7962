//! The machine that the program runs on.

#![expect(unsafe_code, reason = "relies on locks, and on their machine, for exclusive access")]

use std::{
    convert::Infallible,
    future::{Future, poll_fn, ready},
    path::Path,
    sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst},
    task::Poll,
};

use crate::{
    Line, Machine, Mailbox, Pair, Queue, Thread, Until, Word, affinity, fork_safe::Found,
    system::clock, topology::numa_nodes,
};

use super::{
    monitor, pair, stream,
    threads::{mailbox, with_thread},
    unique, wait,
};

/// Processor cycles of one spin hint, roughly.
const CYCLES_PER_HINT: u64 = 40;

/// The machine that the program runs on, for any thread: atomics, and messages over cache lines.
///
/// Its futures never fail. [`block_on`](crate::block_on) drives a future. Under any other driver, a
/// wait is pending until it is polled again: nothing wakes the task.
#[derive(Clone, Copy, Debug)]
pub struct NativeMachine(());

impl NativeMachine {
    /// Returns the machine.
    ///
    /// # Safety
    /// All threads of the program share the machine, and one thread's use of it affects the others.
    /// So only algorithms may use it that return each line once, after its last use; send messages
    /// only to their own queues and answer each request once; and drive each future to its end, one
    /// at a time on each thread.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// Returns the ordering of a failed compare-exchange.
const fn on_failure(order: Ordering) -> Ordering {
    match order {
        Relaxed | Release => Relaxed,
        SeqCst => SeqCst,
        _ => Acquire,
    }
}

/// Tests a word with `test`. If the wait is pending, records the word for a thread that goes to
/// sleep, and the time at which the wait ends regardless.
#[inline(always)]
fn look<T>(word: &Word, end: Option<u64>, test: impl Fn() -> Option<T>) -> Poll<T> {
    if let Some(output) = test() {
        return Poll::Ready(output);
    }
    with_thread(|state| {
        state.waits_for.set((wait::address(word), end));
        if !state.watches.get() {
            return Poll::Pending;
        }
        monitor::watch(word);
        // An earlier store does not make the processor end its wait, so test once more.
        test().map_or(Poll::Pending, Poll::Ready)
    })
}

/// Waits until a word satisfies `until`.
fn reaches(word: &Word, until: Until) -> impl Future<Output = u64> {
    let test = move || Some(word.atomic().load(Acquire)).filter(|&value| until.holds(value));
    poll_fn(move |_| look(word, None, test))
}

/// Returns the NUMA node of the processor on which the calling thread runs; 0 if it is unknown.
fn current_node() -> u32 {
    /// The node of each processor; empty if there are not several nodes.
    static NODES: Found<Box<[u32]>> = Found::new();
    let nodes = NODES.get_or_find(|| several(numa_nodes(Path::new("/"))));
    if nodes.is_empty() {
        return 0;
    }
    let node = affinity::current().and_then(|cpu| nodes.get(cpu.0 as usize));
    node.copied().unwrap_or(0)
}

/// Returns the nodes of processors if they are not all the same.
fn several(nodes: Vec<u32>) -> Box<[u32]> {
    let is_one = nodes.windows(2).all(|two| two[0] == two[1]);
    if is_one { Box::default() } else { nodes.into() }
}

/// Returns the caller's mailbox.
#[inline]
fn mine() -> &'static Mailbox {
    with_thread(|state| state.thread()).1
}

// SAFETY: words are atomics, a line is kept by one thread or in the pool, threads get their numbers
// under a lock, each block of unique numbers has one thread, and a mailbox has one receiver, the
// thread with its number.
unsafe impl Machine for NativeMachine {
    type Stop = Infallible;

    const MESSAGE_WORDS: usize = Mailbox::MESSAGE_WORDS;

    #[inline]
    fn thread(&self) -> Thread {
        with_thread(|state| state.thread().0)
    }

    fn numa_node(&self) -> u32 {
        current_node()
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    #[inline(always)]
    fn take_line(&self) -> &'static Line {
        with_thread(|state| state.take_line())
    }

    #[inline(always)]
    fn give_line(&self, line: &'static Line) {
        with_thread(|state| state.lines.give(line));
    }

    #[inline(always)]
    fn unique(&self) -> u64 {
        with_thread(|state| state.numbers.take(unique::next_block))
    }

    #[inline(always)]
    fn waiting_word(&self, object: &Word, number: u64) -> &Word {
        unique::word(object, number)
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
        stream::store(word, value);
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
    fn has_pairs(&self) -> bool {
        pair::is_supported()
    }

    #[inline(always)]
    fn compare_exchange_pair(
        &self,
        pair: &Pair,
        current: [u64; 2],
        new: [u64; 2],
        _: Ordering,
    ) -> impl Future<Output = Result<[u64; 2], [u64; 2]>> {
        ready(pair::compare_exchange(pair, current, new))
    }

    #[inline(always)]
    fn fence(&self, order: Ordering) -> impl Future<Output = ()> {
        stream::order(order);
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
            look(word, Some(at_ns), || {
                let value = word.atomic().load(Acquire);
                if until.holds(value) {
                    Some(Some(value))
                } else if clock::now_ns() >= at_ns {
                    Some(None)
                } else {
                    None
                }
            })
        });
        Ok(wait.await)
    }

    #[inline(always)]
    fn wake(&self, word: &Word) {
        wait::wake(word);
    }

    #[inline]
    async fn send(&self, to: Thread, queue: Queue, message: &[u64]) -> Result<(), Infallible> {
        mailbox(to).send(self, mine, queue, message).await
    }

    #[inline]
    async fn receive<const WORDS: usize>(&self, queue: Queue) -> Result<[u64; WORDS], Infallible> {
        mine().receive(self, queue).await
    }

    #[inline]
    async fn is_empty(&self, queue: Queue) -> bool {
        mine().is_empty(self, queue).await
    }

    #[inline]
    async fn answer(&self, to: Thread, value: u64) {
        mailbox(to).answer(self, value).await;
    }

    #[inline]
    async fn receive_answer(&self) -> Result<u64, Infallible> {
        mine().receive_answer(self).await
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn a_pinned_thread_has_the_node_of_its_processor() {
        for cpu in Topology::discover().cpus() {
            let pinned = std::thread::scope(|scope| {
                let pinned = || affinity::pin(cpu.id).ok().map(|()| current_node());
                scope.spawn(pinned).join().expect("no panic")
            });
            assert!(pinned.is_none_or(|node| node == cpu.node), "{cpu:?}: {pinned:?}");
        }
    }

    #[test]
    fn one_node_needs_no_table() {
        assert!(several(vec![0, 0, 0]).is_empty());
        assert_eq!(*several(vec![0, 1, 0]), [0, 1, 0]);
    }
}
