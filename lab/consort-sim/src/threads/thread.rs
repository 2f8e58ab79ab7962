//! A simulated thread: its clock, copies of lines, atomic operations, waits for words.

use std::{
    rc::Rc,
    sync::atomic::Ordering::{self, Acquire},
};

use consort_machine::{Line, Machine, Thread, Until, Word};

use super::{
    costs::Access,
    stores::releases,
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
/// Waits never end early: a simulation that ends drops its threads, and a simulation that cannot
/// continue is an error.
#[derive(Clone)]
pub struct SimulatedThread {
    pub(super) world: Rc<World>,
    pub(super) me: u32,
}

impl SimulatedThread {
    pub(super) const fn new(world: Rc<World>, me: u32) -> Self {
        Self { world, me }
    }

    pub(super) fn state(&self) -> &ThreadState {
        self.world.thread(self.me)
    }

    /// Returns the number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.world.threads.len()
    }

    /// Marks this thread as a server: the simulation may end without it.
    pub fn serve(&self) {
        self.state().is_server.set(true);
    }

    /// Announces consecutive lines. Only these have neighbours, which processors fetch in advance.
    /// They start a page. Their home is where the caller runs, unless the machine spreads its
    /// lines. Lines that are already announced stay as they are.
    pub fn announce(&self, lines: &[Line]) {
        self.world.lines.add_region(lines, self.state().core);
    }

    /// Draws a random number below `bound`; 0 if `bound` is 0.
    #[must_use]
    pub fn random(&self, bound: u64) -> u64 {
        self.advance(self.world.costs.random);
        self.world.engine.roll_below(bound)
    }

    /// Rests for a number of cycles, while the other threads run. [`Machine::pause`] and
    /// [`spin`](Self::spin) only advance the clock of this thread: the others run once it accesses
    /// memory, so they see nothing of what the program itself does before and after.
    pub async fn rest(&self, cycles: u64) {
        self.advance(self.world.costs.cycles(cycles as f64));
        self.world.engine.reach(self.clock()).await;
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

    /// Returns the tally of a thread so far.
    #[must_use]
    pub fn tally_of(&self, thread: Thread) -> Tally {
        *self.world.tally(thread.0)
    }

    /// Returns whether a message for a queue is in the thread's buffer.
    pub(super) fn has_message(&self, queue: u64) -> bool {
        let inbox = self.state().inbox.borrow();
        inbox.queues.get(&Some(queue)).is_some_and(|queue| !queue.is_empty())
    }

    pub(super) fn clock(&self) -> Time {
        self.state().clock.get().max(self.world.engine.now())
    }

    pub(super) fn advance(&self, time: Time) {
        self.state().clock.set(self.clock() + time);
    }

    /// Spends the time of loads and stores of memory that no other thread uses.
    pub(super) fn access_own(&self, loads: u64, stores: u64) {
        let costs = &self.world.costs;
        self.advance((loads + stores) * costs.operation + loads * costs.hit);
    }

    /// Begins an operation. Afterwards the engine is at the thread's clock.
    pub(super) async fn begin(&self) {
        self.advance(self.world.costs.operation + self.world.late());
        self.world.engine.reach(self.clock()).await;
    }

    /// Waits until a line has served the thread, and stalls until the thread knows.
    async fn served(&self) {
        let state = self.state();
        state.waits_for.set(Some(WaitsFor::Memory));
        let done = self.world.engine.wait(|| state.served.take()).await;
        state.waits_for.set(None);
        self.world.stall(self.me, Stall::Coherence, done);
    }

    /// Gets a copy of a line. The engine is at the thread's clock.
    pub(super) async fn fetch(&self, line: u32) {
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
                if world.costs.loads_wait {
                    world.drain(self.me, Stall::Coherence, |state| state.stores.get() == 0).await;
                }
                world.tally(self.me).remote_reads += 1;
                world.begin(self.me, line, Kind::Load, world.engine.now());
                self.served().await;
                true
            }
        };
        world.accessed(self.me, line, missed, self.clock());
    }

    /// Executes an atomic operation on words of one line. It writes what `new` computes from the
    /// old values, and returns the old values.
    pub(super) async fn atomic<const WORDS: usize>(
        &self,
        words: &[Word; WORDS],
        op: AtomicOp,
        order: Ordering,
        new: impl FnOnce([u64; WORDS]) -> Option<[u64; WORDS]>,
    ) -> [u64; WORDS] {
        self.begin().await;
        let (world, state) = (&*self.world, self.state());
        let (line, first) = world.find(&words[0], self.me);
        if world.costs.in_order {
            world.drain(self.me, Stall::Fence, |state| state.stores.get() == 0).await;
        } else if releases(order) {
            world.release(self.me).await;
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
        let mut place = (first..).zip(words);
        let old = std::array::from_fn(|index| {
            let place = first + u8::try_from(index).unwrap_or(0);
            line.value(place, &words[index], self.me)
        });
        for new in new(old).into_iter().flatten() {
            if let Some((place, word)) = place.next() {
                line.set(place, word, new);
            }
        }
        for spinner in line.spinners.drain(..) {
            world.engine.wake(spinner);
        }
        old
    }

    /// Spins on a word until it satisfies `until` or the clock has reached `end`.
    pub(super) async fn spin_until(
        &self,
        word: &Word,
        until: Until,
        end: Option<Time>,
    ) -> Option<u64> {
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
