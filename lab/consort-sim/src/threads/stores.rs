//! The store buffer of a thread, its fences, and stores that bypass the caches.
//!
//! A store to a line that the core may write is visible at once. Any other store has an entry of
//! the buffer until the line has served it. If stores are in order, stores to the same line that
//! directly follow it are served with it, before another core gets the line. If stores overlap,
//! later stores to the same line join it, and a release executes a fence first, which waits for the
//! acknowledgement of all stores. Releases around [private sections](super::PrivateSections) have
//! fewer fences.

use std::sync::atomic::Ordering;

use consort_machine::Word;

use super::{
    lines::Cores,
    tally::Stall,
    traffic::Kind,
    world::{ThreadState, WaitsFor, World},
};

/// Returns whether an operation with this ordering makes earlier operations visible.
pub(super) const fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl World {
    /// Stalls the thread until a condition holds. The engine is at its clock.
    pub(super) async fn drain(
        &self,
        thread: u32,
        cause: Stall,
        done: impl Fn(&ThreadState) -> bool,
    ) {
        let state = self.thread(thread);
        if done(state) {
            return;
        }
        state.waits_for.set(Some(WaitsFor::Memory));
        self.engine.wait(|| done(state).then_some(())).await;
        state.waits_for.set(None);
        self.stall(thread, cause, self.engine.now());
    }

    /// Waits, before a release, until the thread's stores are acknowledged.
    pub(super) async fn release(&self, thread: u32) {
        let state = self.thread(thread);
        if self.costs.in_order || state.stores.get() == 0 {
            return;
        }
        self.drain(thread, Stall::Fence, |state| state.stores.get() == 0).await;
        self.stall(thread, Stall::Fence, state.clock.get() + self.costs.fence);
        self.engine.reach(state.clock.get()).await;
    }

    /// Writes a word. The engine is at the thread's clock.
    pub(super) async fn store(&self, thread: u32, word: &Word, value: u64, order: Ordering) {
        let (line, place) = self.find(word, thread);
        let ordered = releases(order) && !self.needs_no_fence(thread, line);
        if ordered {
            self.release(thread).await;
        }
        self.written(thread, line);
        if self.store_at_once(thread, line, place, word, value, ordered)
            || self.join_store(thread, line, place, word, value, ordered)
        {
            return;
        }
        let room = |state: &ThreadState| state.stores.get() < self.costs.store_buffer;
        self.drain(thread, Stall::StoreBuffer, room).await;
        let state = self.thread(thread);
        let number = self.prepare(thread, line, Kind::Store);
        {
            let mut line = self.lines.at(line);
            let mut transaction = self.transaction(number);
            transaction.places.push(place);
            transaction.ordered = ordered;
            line.issue(place, word, value, thread);
            let remote = line.holders != Cores::only(state.core);
            state.tally.borrow_mut().remote_writes += u64::from(remote);
        }
        state.unseen.borrow_mut().push_back(number);
        state.stores.set(state.stores.get() + 1);
        if !self.costs.in_order || state.stores.get() == 1 {
            self.start(number, self.engine.now());
        } else if self.costs.claims_lines {
            self.fetch_ahead(thread, line, true, self.engine.now());
        }
    }

    /// Returns whether a release store of a thread needs no fence, because the data is private to
    /// sections. Inside a section it is an ordinary store. An answer that directly follows its
    /// result on the same line, or a request its operation, reaches the home after it.
    fn needs_no_fence(&self, thread: u32, line: u32) -> bool {
        let Some(sections) = &self.sections else { return false };
        let unseen = self.thread(thread).unseen.borrow();
        sections.is_in(thread) || unseen.iter().any(|&other| self.transaction(other).line == line)
    }

    /// Writes a word if the core may write the line and the buffer has no store that must come
    /// first.
    fn store_at_once(
        &self,
        thread: u32,
        line: u32,
        place: u8,
        word: &Word,
        value: u64,
        ordered: bool,
    ) -> bool {
        let state = self.thread(thread);
        let mut line = self.lines.at(line);
        let ready = line.owner == Some(state.core)
            && line.own_store(place, thread).is_none()
            && if self.costs.in_order {
                state.stores.get() == 0 && line.free <= self.engine.now()
            } else {
                !ordered || state.unseen.borrow().is_empty()
            };
        if ready {
            line.set(place, word, value);
            for spinner in line.spinners.drain(..) {
                self.engine.wake(spinner);
            }
        }
        ready
    }

    /// Adds a word to the last store to its line, if stores overlap and that store is not visible
    /// yet.
    fn join_store(
        &self,
        thread: u32,
        line: u32,
        place: u8,
        word: &Word,
        value: u64,
        ordered: bool,
    ) -> bool {
        let state = self.thread(thread);
        let unseen = state.unseen.borrow();
        let same = |number: &&u32| self.transaction(**number).line == line;
        let mut newest = unseen.iter().rev().filter(|_| !self.costs.in_order);
        let Some(&number) = newest.find(same) else { return false };
        let mut transaction = self.transaction(number);
        transaction.places.push(place);
        transaction.ordered |= ordered;
        self.lines.at(line).issue(place, word, value, thread);
        true
    }

    /// Writes a word past the caches. The engine is at the thread's clock.
    pub(super) async fn stream(&self, thread: u32, word: &Word, value: u64) {
        let Some(costs) = self.costs.streaming else {
            return self.store(thread, word, value, Ordering::Relaxed).await;
        };
        self.drain(thread, Stall::StoreBuffer, |state| state.streams.get() < costs.buffers).await;
        let (line, place) = self.find(word, thread);
        let number = self.prepare(thread, line, Kind::Stream);
        self.transaction(number).places.push(place);
        self.lines.at(line).issue(place, word, value, thread);
        let state = self.thread(thread);
        state.streams.set(state.streams.get() + 1);
        self.start(number, self.engine.now());
    }

    /// Executes a fence.
    pub(super) async fn fence(&self, thread: u32, order: Ordering) {
        if !releases(order) {
            return;
        }
        let streamed = |state: &ThreadState| state.streams.get() == 0;
        self.drain(thread, Stall::Fence, streamed).await;
        if !self.costs.in_order || order == Ordering::SeqCst {
            self.drain(thread, Stall::Fence, |state| state.stores.get() == 0).await;
            self.stall(thread, Stall::Fence, self.thread(thread).clock.get() + self.costs.fence);
        }
    }
}
