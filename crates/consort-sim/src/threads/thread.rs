//! A simulated thread, the machine as it sees it.

use std::{
    convert::Infallible,
    future::ready,
    rc::Rc,
    sync::atomic::Ordering::{self, Acquire},
};

use consort_fabric::{Line, Machine, Queue, Thread, Until, Word};

use super::{
    costs::Access,
    tally::{Stall, Tally},
    traffic::Kind,
    world::{ThreadState, WaitsFor, World},
};
use crate::{
    engine::{Time, What},
    machines::{AtomicOp, State},
};

/// A thread of a simulated machine.
///
/// Waits never end early: a simulation that ends drops its threads, and one that cannot go on is an
/// error.
#[derive(Clone)]
pub struct SimulatedThread {
    world: Rc<World>,
    me: u32,
}

impl SimulatedThread {
    pub(super) const fn new(world: Rc<World>, me: u32) -> Self {
        Self { world, me }
    }

    fn state(&self) -> &ThreadState {
        self.world.thread(self.me)
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.world.threads.len()
    }

    /// Lets the simulation end without this thread: it is a server.
    pub fn serve(&self) {
        self.state().is_server.set(true);
    }

    /// Announces lines that follow each other: only these have neighbours, which processors fetch
    /// in advance. They begin a page, and are at home where the caller runs unless the machine
    /// spreads its lines. Lines that are announced already stay as they are.
    pub fn announce(&self, lines: &[Line]) {
        self.world.lines.add_region(lines, self.state().core);
    }

    /// A random number below `bound`; 0 if `bound` is 0.
    #[must_use]
    pub fn random(&self, bound: u64) -> u64 {
        self.world.engine.roll_below(bound)
    }

    /// Runs an empty loop.
    pub fn spin(&self, iterations: u64) {
        self.advance(self.world.costs.cycles(iterations as f64 * self.world.costs.loop_cycles));
    }

    /// Runs and counts an operation of the program.
    pub async fn operation<T>(&self, operation: impl Future<Output = T>) -> T {
        let begin = self.clock();
        let result = operation.await;
        let end = self.clock();
        let mut tally = self.world.tally(self.me);
        tally.operations += 1;
        tally.operating += end - begin;
        result
    }

    /// What it has done so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        *self.world.tally(self.me)
    }

    fn clock(&self) -> Time {
        self.state().clock.get().max(self.world.engine.now())
    }

    fn advance(&self, time: Time) {
        self.state().clock.set(self.clock() + time);
    }

    /// Begins an operation: the engine is at the thread's clock then.
    async fn begin(&self) {
        self.advance(self.world.costs.operation + self.world.late());
        self.world.engine.reach(self.clock()).await;
    }

    /// Waits until a line has served the thread, and stalls until it knows.
    async fn served(&self) {
        let state = self.state();
        state.waits_for.set(Some(WaitsFor::Memory));
        let done = self.world.engine.wait(|| state.served.take()).await;
        state.waits_for.set(None);
        self.world.stall(self.me, Stall::Coherence, done);
    }

    /// Gets a copy of a line. The engine is at the thread's clock.
    async fn fetch(&self, line: u32) {
        let (world, state) = (&*self.world, self.state());
        let now = world.engine.now();
        let fetches = &world.cores[state.core as usize].fetches;
        let coming = fetches.borrow().iter().find(|fetch| fetch.line == line).copied();
        let missed = match coming.map(|fetch| (fetch.transaction, fetch.done)) {
            Some((_, Some(done))) if done > now => {
                world.stall(self.me, Stall::Coherence, done);
                true
            }
            Some((transaction, None)) => {
                world.transaction(transaction).joined.push(self.me);
                self.served().await;
                true
            }
            _ if world.has(&world.lines.at(line), state.core, Kind::Load) => {
                self.advance(world.costs.hit);
                false
            }
            _ => {
                world.tally(self.me).remote_reads += 1;
                world.begin(self.me, line, Kind::Load, now);
                self.served().await;
                true
            }
        };
        world.accessed(self.me, line, missed, self.clock());
    }

    /// An atomic operation that writes what `new` makes of the old value, which it returns.
    async fn atomic(
        &self,
        word: &Word,
        op: AtomicOp,
        order: Ordering,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        self.begin().await;
        let (world, state) = (&*self.world, self.state());
        let (line, place) = world.find(word, self.me);
        if world.costs.in_order {
            world.drain(self.me, Stall::Fence, |state| state.stores.get() == 0).await;
        } else {
            world.lines.at(line).carries_flag = true;
            if super::stores::releases(order) {
                world.release(self.me).await;
            }
        }
        world.tally(self.me).atomics += 1;
        let here = {
            let line = world.lines.at(line);
            world.has(&line, state.core, Kind::Atomic(op)) && line.free <= world.engine.now()
        };
        if here {
            self.advance(world.costs.access(Access::Atomic(op), State::Modified, 0));
        } else {
            let home = world.lines.at(line).home;
            let at_home = world.costs.atomics_at_home && home == state.core;
            world.tally(self.me).remote_atomics += u64::from(!at_home);
            world.written(self.me, line);
            let transaction = world.prepare(self.me, line, Kind::Atomic(op));
            world.transaction(transaction).ordered = true;
            world.start(transaction, world.engine.now());
            self.served().await;
        }
        let mut line = world.lines.at(line);
        let old = line.value(place, word, self.me);
        if let Some(new) = new(old) {
            line.set(place, word, new);
        }
        for spinner in line.spinners.drain(..) {
            world.engine.wake(spinner);
        }
        old
    }

    /// Spins on a word until it satisfies `until` or the clock has reached `end`.
    async fn spin_until(&self, word: &Word, until: Until, end: Option<Time>) -> Option<u64> {
        let mut value = self.load(word, Acquire).await;
        if until.holds(value) {
            return Some(value);
        }
        let (world, state) = (&*self.world, self.state());
        let (line, place) = world.find(word, self.me);
        if let Some(end) = end {
            world.engine.at(end, What::Resume(self.me));
        }
        state.idles.set(true);
        world.lines.at(line).spinning += 1;
        let is_over = || end.is_some_and(|end| self.clock() >= end);
        while !until.holds(value) && !is_over() {
            state.waits_for.set(Some(WaitsFor::Word { line, place, until, value }));
            let changed = || {
                let mut line = world.lines.at(line);
                let spins = line.holders.has(state.core)
                    && line.value(place, word, self.me) == value
                    && !is_over();
                if spins && !line.spinners.contains(&self.me) {
                    line.spinners.push(self.me);
                }
                (!spins).then_some(())
            };
            world.engine.wait(changed).await;
            state.waits_for.set(None);
            world.stall(self.me, Stall::Coherence, world.engine.now());
            self.advance(world.engine.roll_below(world.costs.spin));
            value = self.load(word, Acquire).await;
        }
        world.lines.at(line).spinning -= 1;
        state.idles.set(false);
        until.holds(value).then_some(value)
    }
}

impl Machine for SimulatedThread {
    type Stop = Infallible;

    const MESSAGE_WORDS: usize = 118;

    fn thread(&self) -> Thread {
        Thread(self.me)
    }

    fn now_ns(&self) -> u64 {
        self.clock() / 1000
    }

    fn take_line(&self) -> &'static Line {
        self.world.take_line(self.me)
    }

    fn give_line(&self, line: &'static Line) {
        self.state().lines.borrow_mut().push(line);
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
        self.atomic(word, AtomicOp::Swap, order, |_| Some(value)).await
    }

    async fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> u64 {
        self.atomic(word, AtomicOp::FetchAdd, order, |old| Some(old.wrapping_add(by))).await
    }

    async fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> Result<u64, u64> {
        let replace = |old| (old == current).then_some(new);
        let old = self.atomic(word, AtomicOp::CompareExchange, order, replace).await;
        let mut tally = self.world.tally(self.me);
        tally.exchanges += 1;
        tally.failed_exchanges += u64::from(old != current);
        if old == current { Ok(old) } else { Err(old) }
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
        assert!(message.len() <= Self::MESSAGE_WORDS, "a message of {} words", message.len());
        self.begin().await;
        self.world.post(self.me, to.0, Some(queue.0), message.to_vec()).await;
        Ok(())
    }

    async fn receive<const WORDS: usize>(&self, queue: Queue) -> Result<[u64; WORDS], Infallible> {
        self.begin().await;
        let words = self.world.take_message(self.me, Some(queue.0)).await;
        let found = words.len();
        Ok(words
            .try_into()
            .unwrap_or_else(|_| panic!("a message has {found} words; its receiver takes {WORDS}")))
    }

    async fn is_empty(&self, queue: Queue) -> bool {
        self.begin().await;
        let inbox = self.state().inbox.borrow();
        inbox.queues.get(&Some(queue.0)).is_none_or(|queue| queue.is_empty())
    }

    async fn answer(&self, to: Thread, value: u64) {
        self.begin().await;
        self.world.post(self.me, to.0, None, vec![value]).await;
    }

    async fn receive_answer(&self) -> Result<u64, Infallible> {
        self.begin().await;
        let words = self.world.take_message(self.me, None).await;
        Ok(words.first().copied().unwrap_or(0))
    }
}
