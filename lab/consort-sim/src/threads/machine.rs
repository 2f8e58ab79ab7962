//! The machine as a simulated thread sees it.

#![expect(unsafe_code, reason = "relies on locks, and on their machine, for exclusive access")]

use std::{array::from_ref, convert::Infallible, future::ready, sync::atomic::Ordering};

use consort_machine::{Line, Machine, Pair, Queue, Thread, Until, Word};

use super::thread::SimulatedThread;
use crate::machines::AtomicOp;

impl SimulatedThread {
    async fn exchange<const WORDS: usize>(
        &self,
        words: &[Word; WORDS],
        current: [u64; WORDS],
        new: [u64; WORDS],
        order: Ordering,
    ) -> Result<[u64; WORDS], [u64; WORDS]> {
        let replace = |old| (old == current).then_some(new);
        let old = self.atomic(words, AtomicOp::CompareExchange, order, replace).await;
        let mut tally = self.world.tally(self.me);
        tally.exchanges += 1;
        tally.failed_exchanges += u64::from(old != current);
        if old == current { Ok(old) } else { Err(old) }
    }
}

// SAFETY: values are in the words themselves, all simulated threads run on one thread, each has its
// own number, queues and lines, and each block of unique numbers has one thread.
unsafe impl Machine for SimulatedThread {
    type Stop = Infallible;

    const MESSAGE_WORDS: usize = 118;

    fn thread(&self) -> Thread {
        Thread(self.me)
    }

    fn numa_node(&self) -> u32 {
        self.state().core / self.world.costs.cores_per_node
    }

    fn now_ns(&self) -> u64 {
        self.clock() / 1000
    }

    fn take_line(&self) -> &'static Line {
        // The count of the thread's lines, and the line's place.
        self.access_own(2, 2);
        self.advance(self.world.costs.allocation);
        self.world.take_line(self.me)
    }

    fn give_line(&self, line: &'static Line) {
        self.access_own(1, 2);
        self.advance(self.world.costs.allocation);
        self.state().lines.borrow_mut().push(line);
    }

    fn unique(&self) -> u64 {
        self.access_own(1, 1);
        self.state().numbers.take(|| self.world.next_block())
    }

    fn waiting_word(&self, object: &Word, number: u64) -> &Word {
        self.world.waiting_word(object, number, self.me)
    }

    async fn load(&self, word: &Word, _: Ordering) -> u64 {
        self.begin().await;
        let (line, place) = self.world.find(word, self.me);
        let own = self.world.lines.at(line).own_store(place, self.me);
        if let Some(own) = own {
            self.advance(self.world.costs.hit);
            return own;
        }
        self.fetch(line).await;
        self.world.lines.at(line).value(place, word, self.me)
    }

    async fn store(&self, word: &Word, value: u64, order: Ordering) {
        self.begin().await;
        self.world.store(self.me, word, value, order).await;
        if order == Ordering::SeqCst {
            self.world.fence(self.me, order).await;
        }
    }

    async fn stream(&self, word: &Word, value: u64) {
        self.begin().await;
        self.world.stream(self.me, word, value).await;
    }

    async fn swap(&self, word: &Word, value: u64, order: Ordering) -> u64 {
        let [old] = self.atomic(from_ref(word), AtomicOp::Swap, order, |_| Some([value])).await;
        old
    }

    async fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> u64 {
        let add = |[old]: [u64; 1]| Some([old.wrapping_add(by)]);
        let [old] = self.atomic(from_ref(word), AtomicOp::FetchAdd, order, add).await;
        old
    }

    async fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> Result<u64, u64> {
        let exchanged = self.exchange(from_ref(word), [current], [new], order).await;
        exchanged.map(|[old]| old).map_err(|[old]| old)
    }

    fn has_pairs(&self) -> bool {
        self.world.costs.pairs
    }

    async fn compare_exchange_pair(
        &self,
        pair: &Pair,
        current: [u64; 2],
        new: [u64; 2],
        order: Ordering,
    ) -> Result<[u64; 2], [u64; 2]> {
        assert!(self.has_pairs(), "the simulated machine cannot exchange pairs of words");
        self.exchange(pair, current, new, order).await
    }

    async fn fence(&self, order: Ordering) {
        self.begin().await;
        self.world.fence(self.me, order).await;
    }

    fn pause(&self, cycles: u64) -> impl Future<Output = ()> {
        self.advance(self.world.costs.cycles(cycles as f64));
        ready(())
    }

    async fn wait_until(&self, word: &Word, until: Until) -> Result<u64, Infallible> {
        loop {
            if let Some(value) = self.spin_until(word, until, None).await {
                return Ok(value);
            }
        }
    }

    async fn wait_until_time(
        &self,
        word: &Word,
        until: Until,
        at_ns: u64,
    ) -> Result<Option<u64>, Infallible> {
        Ok(self.spin_until(word, until, Some(at_ns.saturating_mul(1000))).await)
    }

    fn wake(&self, _: &Word) {}

    async fn send(&self, to: Thread, queue: Queue, message: &[u64]) -> Result<(), Infallible> {
        let Some(costs) = &self.world.costs.messages else {
            let (mailbox, mine) = (self.world.mailbox(to.0), self.world.mailbox(self.me));
            return mailbox.send(self, || &mine, queue, message).await;
        };
        let most = Self::MESSAGE_WORDS;
        assert!(message.len() <= most, "a message of {} words, more than {most}", message.len());
        self.begin().await;
        self.world.post(costs, (self.me, to.0), Some(queue.0), message.to_vec()).await;
        Ok(())
    }

    async fn receive<const WORDS: usize>(&self, queue: Queue) -> Result<[u64; WORDS], Infallible> {
        let Some(costs) = &self.world.costs.messages else {
            return self.world.mailbox(self.me).receive(self, queue).await;
        };
        self.begin().await;
        let words = self.world.take_message(costs, self.me, Some(queue.0)).await;
        let found = words.len();
        Ok(words
            .try_into()
            .unwrap_or_else(|_| panic!("a message has {found} words; its receiver takes {WORDS}")))
    }

    async fn is_empty(&self, queue: Queue) -> bool {
        if self.world.costs.messages.is_none() {
            return self.world.mailbox(self.me).is_empty(self, queue).await;
        }
        self.begin().await;
        !self.has_message(queue.0)
    }

    async fn answer(&self, to: Thread, value: u64) {
        let Some(costs) = &self.world.costs.messages else {
            return self.world.mailbox(to.0).answer(self, value).await;
        };
        self.begin().await;
        self.world.post(costs, (self.me, to.0), None, vec![value]).await;
    }

    async fn receive_answer(&self) -> Result<u64, Infallible> {
        let Some(costs) = &self.world.costs.messages else {
            return self.world.mailbox(self.me).receive_answer(self).await;
        };
        self.begin().await;
        let words = self.world.take_message(costs, self.me, None).await;
        Ok(words.first().copied().unwrap_or(0))
    }
}
