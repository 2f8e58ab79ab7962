//! Transactions on lines: their times, the order in which a line serves them, and their effect on
//! copies.
//!
//! A transaction travels to the line, queues behind those that arrived before, is served, and
//! travels back. All its changes happen when it is served. If it waits for no other transaction, it
//! costs the number that the description gives for the operation, the state and the distance.
//!
//! On a machine that executes atomic operations at the line's home, every transaction occupies the
//! line there equally long. An atomic operation also occupies the home's unit for atomic
//! operations, which executes those on all its lines one at a time (Petrović 2015, section 6.2.4).
//! If stores are written through to the home as well, no core owns a line: each store is a
//! transaction, and it leaves only its own core with a copy, if that core had one. On other
//! machines, a line that is fetched for writing serves no other transaction before it has arrived.

use super::{
    costs::Access,
    lines::{Cores, LineState},
    traffic::{Kind, TrafficItem, Transaction},
    world::{Fetch, World},
};
use crate::{
    engine::{Time, What},
    machines::State,
};

impl Kind {
    /// Returns the operation whose cost the transaction has.
    const fn access(self) -> Access {
        match self {
            Self::Load | Self::Prefetch { own: false } => Access::Load,
            Self::Store | Self::Prefetch { own: true } | Self::Stream => Access::Store,
            Self::Atomic(op) => Access::Atomic(op),
        }
    }
}

impl World {
    /// Returns the state of a line for an access of a core, and its distance.
    fn found(&self, line: &LineState, core: u32, access: Access) -> (State, usize) {
        let others = || line.holders.each().filter(|&holder| holder != core);
        let to = |holder| self.costs.distance(core, holder);
        // Where nobody owns a line, one copy costs what a modified or exclusive line does.
        let shared = if self.costs.stores_at_home {
            line.holders.each().nth(1).is_some()
        } else {
            line.owner.is_none() && others().next().is_some()
        };
        let state = match (line.cached, shared) {
            (false, _) => State::Invalid,
            (true, true) => State::Shared,
            (true, false) => State::Modified,
        };
        let distance = match (line.owner, access) {
            _ if self.costs.atomics_at_home || !line.cached => to(line.home),
            (Some(owner), _) => to(owner),
            (None, Access::Load) => others().map(to).min().unwrap_or_else(|| to(line.home)),
            (None, _) => others().map(to).max().unwrap_or_else(|| to(line.home)),
        };
        (state, distance)
    }

    /// Returns whether a core needs no transaction.
    pub(super) fn has(&self, line: &LineState, core: u32, kind: Kind) -> bool {
        match kind {
            Kind::Load | Kind::Prefetch { own: false } => line.holders.has(core),
            Kind::Store | Kind::Prefetch { own: true } => line.owner == Some(core),
            Kind::Atomic(_) => !self.costs.atomics_at_home && line.owner == Some(core),
            Kind::Stream => false,
        }
    }

    /// Returns the cost of a transaction on a line in its present state.
    fn cost(&self, line: &LineState, core: u32, kind: Kind) -> Time {
        let (state, distance) = self.found(line, core, kind.access());
        self.costs.access(kind.access(), state, distance)
    }

    /// Returns the time that a transaction takes to travel to the line.
    fn travel(&self, line: &LineState, core: u32, kind: Kind) -> Time {
        if self.has(line, core, kind) {
            return 0;
        }
        match (kind, &self.costs.streaming) {
            (Kind::Stream, Some(costs)) if line.spinning > 0 => costs.spun_write,
            (Kind::Stream, Some(costs)) => costs.write,
            _ => self.cost(line, core, kind).saturating_sub(self.costs.serve) / 2,
        }
    }

    /// Begins a transaction of a thread at the time `at`. Returns its number.
    pub(super) fn begin(&self, thread: u32, line: u32, kind: Kind, at: Time) -> u32 {
        let number = self.prepare(thread, line, kind);
        self.start(number, at);
        number
    }

    /// Creates a transaction without starting it. Returns its number.
    pub(super) fn prepare(&self, thread: u32, line: u32, kind: Kind) -> u32 {
        let core = self.thread(thread).core;
        let transaction = Transaction {
            kind,
            thread,
            core,
            line,
            travelled: 0,
            places: Vec::new(),
            ordered: false,
            joined: Vec::new(),
            served: false,
            followed: false,
        };
        self.traffic.borrow_mut().add(TrafficItem::Transaction(transaction))
    }

    /// Starts a transaction.
    pub(super) fn start(&self, number: u32, at: Time) {
        let mut transaction = self.transaction(number);
        let line = self.lines.at(transaction.line);
        let travel = self.travel(&line, transaction.core, transaction.kind);
        transaction.travelled = travel;
        self.engine.at(at + travel + self.late(), What::Arrive(number));
    }

    /// Handles the arrival of a transaction at its line, or its end.
    pub(super) fn arrive(&self, number: u32) {
        let transaction = self.transaction(number);
        if transaction.served {
            drop(transaction);
            return self.stored(number);
        }
        if transaction.ordered {
            let state = self.thread(transaction.thread);
            if state.unseen.borrow().front().is_some_and(|&first| first != number) {
                return state.held.borrow_mut().push(number);
            }
        }
        let mut line = self.lines.at(transaction.line);
        let free = line.free.max(self.unit_free(&line, transaction.kind));
        drop(transaction);
        let is_first = line.queue.front() == Some(&number);
        if free > self.engine.now() || !is_first && !line.queue.is_empty() {
            if !is_first {
                line.queue.push_back(number);
            }
            if line.queue.front() == Some(&number) {
                self.engine.at(free, What::Arrive(number));
            }
            return;
        }
        if is_first {
            line.queue.pop_front();
        }
        self.serve(number, &mut line);
        if let Some(&next) = line.queue.front() {
            self.engine.at(line.free, What::Arrive(next));
        }
    }

    /// Returns the time when a line's home can execute a transaction.
    fn unit_free(&self, line: &LineState, kind: Kind) -> Time {
        match kind {
            Kind::Atomic(_) if self.costs.atomics_at_home => {
                self.cores[line.home as usize].atomics_free.get()
            }
            _ => 0,
        }
    }

    /// Serves a transaction.
    fn serve(&self, number: u32, line: &mut LineState) {
        let now = self.engine.now();
        let mut transaction = self.transaction(number);
        let Transaction { kind, thread, core, travelled, .. } = *transaction;
        let (rest, occupied) = if self.has(line, core, kind) {
            (if kind == Kind::Store { self.costs.cycle } else { self.costs.hit }, 0)
        } else {
            let writes = kind.access() != Access::Load;
            let others = line.holders.each().filter(|&holder| holder != core).count();
            let more =
                if writes { others.saturating_sub(1) as Time * self.costs.sharer } else { 0 };
            let serve = self.costs.serve + more;
            let rest = (self.cost(line, core, kind) + more).saturating_sub(travelled).max(serve);
            let transferred = !self.costs.atomics_at_home && writes || self.takes(line, core, kind);
            (rest, if transferred && kind != Kind::Stream { rest } else { serve })
        };
        line.free = now + occupied;
        if self.costs.atomics_at_home && matches!(kind, Kind::Atomic(_)) {
            self.cores[line.home as usize].atomics_free.set(now + self.costs.serve);
        }
        self.change_copies(line, core, kind);
        for &place in &transaction.places {
            line.publish(place, thread);
        }
        let state = self.thread(thread);
        match kind {
            Kind::Load | Kind::Atomic(_) => {
                state.served.set(Some(now + rest));
                self.engine.wake(thread);
            }
            Kind::Store => {
                transaction.served = true;
                state.unseen.borrow_mut().retain(|&other| other != number);
                for held in state.held.borrow_mut().drain(..) {
                    self.engine.at(now, What::Arrive(held));
                }
                let served = transaction.line;
                drop(transaction);
                self.engine.at(now + rest, What::Arrive(number));
                if self.costs.in_order {
                    self.follow(number, served, line, now + rest);
                }
                return;
            }
            Kind::Prefetch { .. } => {
                let mut fetches = self.cores[core as usize].fetches.borrow_mut();
                let open = |fetch: &&mut Fetch| fetch.done.is_none() && fetch.transaction == number;
                let fetch = fetches.iter_mut().find(open);
                if let Some(fetch) = fetch {
                    fetch.done = Some(now + rest);
                }
                for &joined in &transaction.joined {
                    self.thread(joined).served.set(Some(now + rest));
                    self.engine.wake(joined);
                }
            }
            Kind::Stream => {
                state.streams.set(state.streams.get() - 1);
                self.engine.wake(thread);
            }
        }
        drop(transaction);
        self.traffic.borrow_mut().take(number);
    }

    /// Serves the stores to the same line that directly follow a store, together with it. One of
    /// them ends each cycle.
    fn follow(&self, first: u32, number: u32, line: &mut LineState, mut ends: Time) {
        let mut last = first;
        let thread = self.transaction(first).thread;
        let mut unseen = self.thread(thread).unseen.borrow_mut();
        while let Some(&next) = unseen.front()
            && self.transaction(next).line == number
        {
            unseen.pop_front();
            self.transaction(last).followed = true;
            let mut transaction = self.transaction(next);
            transaction.served = true;
            for &place in &transaction.places {
                line.publish(place, thread);
            }
            ends += self.costs.cycle;
            self.engine.at(ends, What::Arrive(next));
            last = next;
        }
    }

    /// Returns whether a load takes the line from the core that owns it. A prefetch never does.
    fn takes(&self, line: &LineState, core: u32, kind: Kind) -> bool {
        self.costs.loads_take_lines
            && kind == Kind::Load
            && line.owner.is_some_and(|owner| owner != core)
    }

    /// Changes which cores have copies, and wakes the threads that spun on a copy that is gone.
    fn change_copies(&self, line: &mut LineState, core: u32, kind: Kind) {
        match kind {
            _ if self.takes(line, core, kind) => {
                line.holders = Cores::only(core);
                line.owner = Some(core);
            }
            Kind::Load | Kind::Prefetch { own: false } => {
                let alone = line.holders.is_empty() && !self.costs.atomics_at_home;
                line.holders.insert(core);
                if line.owner != Some(core) {
                    line.owner = alone.then_some(core);
                }
                line.cached = true;
                return;
            }
            Kind::Atomic(_) if self.costs.atomics_at_home => {
                line.holders = Cores::default();
                line.owner = None;
                line.cached = true;
            }
            Kind::Store if self.costs.stores_at_home => {
                let keeps = self.costs.stores_keep_copies && line.holders.has(core);
                line.holders = if keeps { Cores::only(core) } else { Cores::default() };
                line.cached = true;
            }
            Kind::Store | Kind::Prefetch { own: true } | Kind::Atomic(_) => {
                line.holders = Cores::only(core);
                line.owner = Some(core);
                line.cached = true;
            }
            Kind::Stream => {
                line.holders = Cores::default();
                line.owner = None;
                line.cached = false;
            }
        }
        for spinner in line.spinners.drain(..) {
            self.engine.wake(spinner);
        }
    }

    /// Handles the end of a store: its entry of the buffer is free.
    fn stored(&self, number: u32) {
        let TrafficItem::Transaction(transaction) = self.traffic.borrow_mut().take(number) else {
            return;
        };
        let state = self.thread(transaction.thread);
        state.stores.set(state.stores.get() - 1);
        self.engine.wake(transaction.thread);
        if self.costs.in_order && !transaction.followed {
            let next = state.unseen.borrow().front().copied();
            if let Some(next) = next {
                self.start(next, self.engine.now());
            }
        }
    }
}
