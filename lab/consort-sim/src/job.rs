//! A simulation: the machine, the number of PEs and the seed with which a program runs on every PE.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use consort_collectives::PlanError;
use consort_fabric::{Capabilities, Nodes, Rank, Ranks, window};

use crate::{
    account::Total,
    costs::{Chaos, Cluster, Coherent, Costs, Effects, Mesh},
    engine::{Engine, What},
    fabric::Call,
    machines::{Kind, Machine},
    notifications::Listener,
    operands::Operands,
    trace::{Recorder, Trace},
    world::World,
};

/// The window of schedules at random.
const EXPLORED_WINDOW: u64 = 16;

/// Events from one look at the deadline to the next. An event may copy megabytes.
const EVENTS_PER_LOOK: u64 = 1 << 8;

/// The settings of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    machine: Option<Machine>,
    pes: u32,
    seed: u64,
    effects: Effects,
    traced: bool,
    heap_bytes: usize,
    window: u64,
    nodes: Nodes,
    deadline: Option<Instant>,
}

/// The reason why a simulation did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// PEs wait for a signal or message that no PE will send.
    #[error(
        "deadlock after {after_ps} ps (seed {seed}): {count} of {pes} PEs wait, the first is PE \
         {first}"
    )]
    Deadlock {
        /// The virtual time, in picoseconds.
        after_ps: u64,
        /// The seed with which it occurs.
        seed: u64,
        /// The number of PEs that wait.
        count: usize,
        /// The number of all PEs.
        pes: u32,
        /// The lowest rank of those that wait.
        first: u32,
    },
    /// The machine has fewer PEs.
    #[error("{machine} has {most} PEs, not {asked}")]
    TooManyPes {
        /// The machine.
        machine: String,
        /// The number of its PEs.
        most: u32,
        /// The number that was asked for.
        asked: u32,
    },
    /// The deadline has passed.
    #[error("it took too long")]
    OutOfTime,
    /// No plan can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// The value that each PE returned, by rank.
    pub results: Vec<R>,
    /// The account of each PE, by rank.
    pub totals: Vec<Total>,
    /// The time when the last PE ended, in nanoseconds of virtual time.
    pub ended_ns: f64,
    /// The number of events.
    pub events: u64,
    /// The trace, if it was enabled.
    pub trace: Trace,
}

impl Simulation {
    /// A simulation of `pes` PEs on a machine: each on a hardware thread of its own, the first
    /// `pes` threads.
    #[must_use]
    pub const fn on(machine: Machine, pes: u32) -> Self {
        Self::of(Some(machine), pes, window(pes as usize) as u64)
    }

    /// A simulation of `pes` PEs whose operations all take random times that depend on the seed:
    /// schedules at random. The window is short, so that a few calls use all of it.
    #[must_use]
    pub const fn explored(pes: u32) -> Self {
        Self::of(None, pes, EXPLORED_WINDOW)
    }

    const fn of(machine: Option<Machine>, pes: u32, window: u64) -> Self {
        Self {
            machine,
            pes,
            seed: 0,
            effects: Effects::PUBLISHED,
            traced: false,
            heap_bytes: 0,
            window,
            nodes: Nodes::One,
            deadline: None,
        }
    }

    /// Sets the seed, instead of 0.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the effects, instead of the published ones.
    #[must_use]
    pub const fn with(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Enables the trace.
    #[must_use]
    pub const fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    /// Sets the symmetric memory of each PE, in bytes.
    #[must_use]
    pub const fn heap_bytes(mut self, bytes: usize) -> Self {
        self.heap_bytes = bytes;
        self
    }

    /// Sets when to give up, in real time.
    #[must_use]
    pub const fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the window, the most calls that may be pending at once, instead of a team's: a power of
    /// two, at least 4.
    #[must_use]
    pub const fn window(mut self, calls: u64) -> Self {
        self.window = calls;
        self
    }

    /// Sets how the PEs of schedules at random are said to lie on nodes, instead of all on one. A
    /// machine's description says it of the machine's.
    #[must_use]
    pub const fn nodes(mut self, nodes: Nodes) -> Self {
        self.nodes = nodes;
        self
    }

    fn costs(&self) -> Result<Costs, SimulationError> {
        let Some(machine) = &self.machine else {
            return Ok(Costs::Chaos(Chaos { nodes: self.nodes }));
        };
        let most = machine.pes();
        if self.pes > most {
            let machine = machine.name.clone();
            return Err(SimulationError::TooManyPes { machine, most, asked: self.pes });
        }
        let (pes, effects) = (self.pes, self.effects);
        Ok(match &machine.kind {
            Kind::MessageBuffers(machine) => Costs::Mesh(Mesh::new(machine, pes, effects)),
            Kind::Cluster(machine) => Costs::Cluster(Cluster::new(machine, effects)),
            Kind::Coherent(machine) => Costs::Coherent(Coherent::new(machine, pes, effects)),
        })
    }

    /// The capabilities of the simulated fabric.
    ///
    /// # Errors
    /// When the machine has fewer PEs.
    pub fn capabilities(&self) -> Result<Capabilities, SimulationError> {
        Ok(self.costs()?.capabilities(self.pes))
    }

    /// Runs `program` on every PE.
    ///
    /// # Errors
    /// When PEs wait for a signal or message that no PE will send, the machine has fewer PEs, or
    /// the deadline passes.
    ///
    /// # Panics
    /// When the program panics or breaks a rule of the fabric: a message that overtakes a whole
    /// window of calls, a buffer that is still exposed when its call ends.
    pub fn run<R>(
        &self,
        program: impl AsyncFn(&Pe<'_>) -> R,
    ) -> Result<Outcome<R>, SimulationError> {
        let engine = Engine::new(self.pes, self.seed, self.machine.is_none());
        let recorder = Recorder::new(self.traced);
        let (pes, heap_bytes) = (self.pes, self.heap_bytes);
        let world = World::new(engine, self.costs()?, recorder, pes, heap_bytes, self.window);
        let pes: Vec<Pe<'_>> = (0..self.pes).map(|rank| Pe::new(&world, Rank(rank))).collect();
        let mut tasks: Vec<Option<Pin<Box<_>>>> =
            pes.iter().map(|pe| Some(Box::pin(program(pe)))).collect();
        let mut results: Vec<Option<R>> = (0..self.pes).map(|_| None).collect();
        let mut context = Context::from_waker(Waker::noop());
        for task in 0..self.pes {
            world.engine.at(0, What::Resume(task));
        }
        while let Some(what) = world.engine.next() {
            let is_looked_at = world.engine.happened().is_multiple_of(EVENTS_PER_LOOK);
            if is_looked_at && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(SimulationError::OutOfTime);
            }
            match what {
                What::Arrive(number) => world.arrive(number),
                What::Resume(task) => {
                    let place = &mut tasks[task as usize];
                    let Some(future) = place else { continue };
                    if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                        results[task as usize] = Some(result);
                        *place = None;
                    }
                }
            }
        }
        let stuck: Vec<usize> = (0..results.len()).filter(|&pe| results[pe].is_none()).collect();
        if let Some(&first) = stuck.first() {
            return Err(SimulationError::Deadlock {
                after_ps: world.engine.now(),
                seed: self.seed,
                count: stuck.len(),
                pes: self.pes,
                first: u32::try_from(first).unwrap_or(u32::MAX),
            });
        }
        drop(tasks);
        drop(pes);
        Ok(Outcome {
            results: results.into_iter().flatten().collect(),
            totals: world.locals.iter().map(|local| local.account.total()).collect(),
            ended_ns: world.engine.now() as f64 / 1e3,
            events: world.engine.happened(),
            trace: world.recorder.finish(),
        })
    }
}

/// One PE of a simulation.
pub struct Pe<'w> {
    world: &'w World,
    rank: Rank,
    calls: Cell<u64>,
}

impl<'w> Pe<'w> {
    fn new(world: &'w World, rank: Rank) -> Self {
        Self { world, rank, calls: Cell::new(0) }
    }

    /// Its rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of PEs.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.world.pes()
    }

    /// The virtual time, in nanoseconds, when all that the PE has begun is complete.
    #[must_use]
    pub fn now_ns(&self) -> f64 {
        self.world.engine.now().max(self.world.costs.settled(self.rank)) as f64 / 1e3
    }

    /// The most calls that may be pending at once. Before it begins another, a PE must know that
    /// all peers have left the first.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.world.local(self.rank).mail.borrow().window()
    }

    /// The number of calls that it has begun.
    pub(crate) const fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Begins the next call. Every PE makes the same calls, one after the other.
    pub async fn begin<'c>(&'c self, operands: Operands<'c>) -> Call<'c> {
        let all = Ranks { first: 0, stride: 1, count: self.size() };
        self.begin_in(all, operands).await
    }

    /// Begins the next call, of a team of which it is one. Every PE makes the same number of calls.
    /// Calls of a PE may be under way together if their buffers are symmetric and different, and
    /// their algorithms use no scratch memory.
    pub async fn begin_in<'c>(&'c self, team: Ranks, operands: Operands<'c>) -> Call<'c> {
        let call = self.calls.replace(self.calls.get() + 1);
        self.world.costs.begin(self.world.site(self.rank)).await;
        Call::new(self.world, (self.rank, team), call, operands)
    }

    /// The PE's part in asynchronous broadcasts. Each PE has one.
    #[must_use]
    pub fn listener(&self) -> Listener<'w> {
        Listener::new(self.world, self.rank)
    }

    /// Waits, at no cost, until all PEs have called this: between timed calls.
    pub async fn align(&self) {
        self.world.align(self.rank).await;
    }

    /// Computes for a time.
    pub async fn work(&self, time_ns: f64) {
        self.world.engine.sleep(crate::engine::picoseconds(time_ns)).await;
    }

    /// Computes for a time while calls of this PE go on beside it: what their messages occupy the
    /// processor for comes on top.
    pub async fn compute(&self, time_ns: f64) {
        let (engine, account) = (&self.world.engine, &self.world.local(self.rank).account);
        let (begun, before) = (engine.now(), account.occupied());
        let time = crate::engine::picoseconds(time_ns);
        loop {
            let until = begun + time + account.occupied() - before;
            if engine.now() >= until {
                return;
            }
            engine.sleep_until(until).await;
        }
    }

    /// Reads the PE's part of the symmetric heap.
    #[must_use]
    pub fn heap(&self, at: usize, bytes: usize) -> Vec<u8> {
        self.heap_of(self.rank, at, bytes)
    }

    /// Writes the PE's part of the symmetric heap.
    pub fn set_heap(&self, at: usize, data: &[u8]) {
        self.set_heap_of(self.rank, at, data);
    }

    /// Reads a peer's part of the symmetric heap, at once and at no cost: for checks.
    #[must_use]
    pub fn heap_of(&self, peer: Rank, at: usize, bytes: usize) -> Vec<u8> {
        self.world.local(peer).read(consort_fabric::Span::heap(at, bytes))
    }

    /// Writes a peer's part of the symmetric heap, at once and at no cost: for checks.
    pub fn set_heap_of(&self, peer: Rank, at: usize, data: &[u8]) {
        self.world.local(peer).write(consort_fabric::Place::Heap, at, data);
    }
}
