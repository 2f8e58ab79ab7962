//! The native [`Machine`]: atomics, and a queue of messages for each PE (see `state::queue`).

use std::{
    future::{Future, poll_fn, ready},
    ops::Deref,
    sync::atomic::{
        AtomicU64,
        Ordering::{self, AcqRel, Acquire, Relaxed},
        fence,
    },
    task::Poll,
};

use consort_fabric::{MESSAGE_WORDS, Machine, Op, Poisoned, Rank, Until};

use crate::{launch::job::Job, state::queue::Queue};

/// A cache line of eight atomic words.
#[repr(align(64))]
#[derive(Debug, Default)]
pub struct Words([AtomicU64; 8]);

impl Deref for Words {
    type Target = [AtomicU64; 8];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// One PE's view of the machine that it runs on.
#[derive(Clone, Copy, Debug)]
pub struct NativeMachine<'j> {
    job: &'j Job,
    rank: Rank,
}

impl<'j> NativeMachine<'j> {
    pub(crate) fn new(job: &'j Job, rank: Rank) -> Self {
        Self { job, rank }
    }

    fn queue(&self) -> &Queue {
        &self.job.queues[self.rank.index()]
    }

    fn when<'f, T>(
        &'f self,
        test: impl Fn() -> Option<T> + Unpin + 'f,
    ) -> impl Future<Output = Op<T>> + 'f {
        poll_fn(move |_| match test() {
            Some(value) => Poll::Ready(Ok(value)),
            None if self.job.is_poisoned() => Poll::Ready(Err(Poisoned)),
            None => Poll::Pending,
        })
    }
}

impl Machine for NativeMachine<'_> {
    type Word = AtomicU64;
    type Line = Words;

    fn line() -> Words {
        Words::default()
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.job.config().pes
    }

    fn now_ns(&self) -> u64 {
        self.job.now_ns()
    }

    #[inline(always)]
    fn load(&self, word: &AtomicU64, order: Ordering) -> impl Future<Output = u64> {
        ready(word.load(order))
    }

    #[inline(always)]
    fn store(&self, word: &AtomicU64, value: u64, order: Ordering) -> impl Future<Output = ()> {
        word.store(value, order);
        ready(())
    }

    #[inline(always)]
    fn stream(&self, word: &AtomicU64, value: u64) -> impl Future<Output = ()> {
        word.store(value, Relaxed);
        ready(())
    }

    #[inline(always)]
    fn swap(&self, word: &AtomicU64, value: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(word.swap(value, order))
    }

    #[inline(always)]
    fn fetch_add(&self, word: &AtomicU64, by: u64, order: Ordering) -> impl Future<Output = u64> {
        ready(word.fetch_add(by, order))
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        word: &AtomicU64,
        current: u64,
        new: u64,
    ) -> impl Future<Output = Result<u64, u64>> {
        ready(word.compare_exchange(current, new, AcqRel, Acquire))
    }

    #[inline(always)]
    fn fence(&self, order: Ordering) -> impl Future<Output = ()> {
        fence(order);
        ready(())
    }

    #[inline(always)]
    fn pause(&self) -> impl Future<Output = ()> {
        std::hint::spin_loop();
        ready(())
    }

    async fn wait_until(&self, word: &AtomicU64, until: Until) -> Op<u64> {
        self.when(move || Some(word.load(Acquire)).filter(|&value| until.holds(value))).await
    }

    async fn send(&self, to: Rank, message: &[u64]) -> Op {
        assert!(message.len() <= MESSAGE_WORDS, "a message has at most {MESSAGE_WORDS} words");
        let queue = &self.job.queues[to.index()];
        let number = queue.sent.counter(0).fetch_add(1, Relaxed);
        let (line, free) = queue.place(number);
        self.when(|| (line.word() == free).then_some(())).await?;
        for index in 0..MESSAGE_WORDS {
            line.write(index, message.get(index).copied().unwrap_or(0));
        }
        line.publish(free + 1);
        self.job.wake(to);
        Ok(())
    }

    async fn receive(&self) -> Op<[u64; MESSAGE_WORDS]> {
        let queue = self.queue();
        let number = queue.received.counter(0).load(Relaxed);
        let (line, free) = queue.place(number);
        self.when(|| (line.word() == free + 1).then_some(())).await?;
        let message = std::array::from_fn(|index| line.read(index));
        queue.received.counter(0).store(number + 1, Relaxed);
        line.publish(free + 2);
        Ok(message)
    }

    fn inbox_is_empty(&self) -> impl Future<Output = bool> {
        let queue = self.queue();
        let (line, free) = queue.place(queue.received.counter(0).load(Relaxed));
        ready(line.word() != free + 1)
    }
}
