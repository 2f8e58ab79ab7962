//! A simulation: the machine, the number of PEs and the seed with which a program runs on every PE.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use consort_collectives::PlanError;
use consort_fabric::{Capabilities, Levels, Nodes, Rank, Ranks, window};

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

/// The window of random schedules.
const EXPLORED_WINDOW: u64 = 16;

/// The number of events between two checks of the deadline. An event may copy megabytes.
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
    levels: Levels,
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
        /// The number of waiting PEs.
        count: usize,
        /// The total number of PEs.
        pes: u32,
        /// The lowest rank of a waiting PE.
        first: u32,
    },
    /// The machine has fewer PEs than requested.
    #[error("{machine} has {most} PEs, not {requested}")]
    TooManyPes {
        /// The machine.
        machine: String,
        /// The number of its PEs.
        most: u32,
        /// The requested number.
        requested: u32,
    },
    /// The deadline has passed.
    #[error("the simulation has passed its deadline")]
    OutOfTime,
    /// There is no plan for the call.
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
    /// When the last PE ended, in nanoseconds of virtual time.
    pub ended_ns: f64,
    /// The number of events.
    pub events: u64,
    /// The trace, if it was enabled.
    pub trace: Trace,
}

impl Simulation {
    /// Returns a simulation of `pes` PEs on a machine. Each PE has its own hardware thread; they
    /// use the first `pes` threads.
    #[must_use]
    pub const fn on(machine: Machine, pes: u32) -> Self {
        Self::of(Some(machine), pes, window(pes as usize) as u64)
    }

    /// Returns a simulation of random schedules: all operations of its `pes` PEs take random times
    /// that depend on the seed. The window is short, so a few calls use all of it.
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
            levels: Levels::NONE,
            deadline: None,
        }
    }

    /// Sets the seed; the default is 0.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the effects; the default is the published ones.
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

    /// Sets the real time at which the simulation gives up.
    #[must_use]
    pub const fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the window, the largest number of pending calls, in place of a team's default. It must
    /// be a power of two, at least 4.
    #[must_use]
    pub const fn window(mut self, calls: u64) -> Self {
        self.window = calls;
        self
    }

    /// Sets how the PEs of random schedules are placed on nodes; by default all are on one node.
    /// For a machine, its description determines this.
    #[must_use]
    pub const fn nodes(mut self, nodes: Nodes) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets how the nodes of random schedules are divided and grouped; by default they are not.
    #[must_use]
    pub const fn levels(mut self, levels: Levels) -> Self {
        self.levels = levels;
        self
    }

    fn costs(&self) -> Result<Costs, SimulationError> {
        let Some(machine) = &self.machine else {
            return Ok(Costs::Chaos(Chaos { nodes: self.nodes, levels: self.levels }));
        };
        let most = machine.pes();
        if self.pes > most {
            let machine = machine.name.clone();
            return Err(SimulationError::TooManyPes { machine, most, requested: self.pes });
        }
        let (pes, effects) = (self.pes, self.effects);
        Ok(match &machine.kind {
            Kind::MessageBuffers(machine) => Costs::Mesh(Mesh::new(machine, pes, effects)),
            Kind::Cluster(machine) => Costs::Cluster(Cluster::new(machine, effects)),
            Kind::Coherent(machine) => Costs::Coherent(Coherent::new(machine, pes, effects)),
        })
    }

    /// Returns the capabilities of the simulated fabric.
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
    /// When the program panics or breaks a rule of the fabric. Examples are a message that
    /// overtakes a whole window of calls, or a buffer that is still exposed when its call ends.
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

    /// Returns the rank of this PE.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of PEs.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.world.pes()
    }

    /// Returns the virtual time, in nanoseconds, when all operations that the PE has started are
    /// complete.
    #[must_use]
    pub fn now_ns(&self) -> f64 {
        self.world.engine.now().max(self.world.costs.settled(self.rank)) as f64 / 1e3
    }

    /// Returns the largest number of calls that may be pending at once. Before a PE starts another
    /// call, it must know that all peers have left the first.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.world.local(self.rank).mail.borrow().window()
    }

    /// Returns the number of calls that this PE has started.
    pub(crate) const fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Starts the next call. Every PE makes the same calls, one after the other.
    pub async fn begin<'c>(&'c self, operands: Operands<'c>) -> Call<'c> {
        let all = Ranks { first: 0, stride: 1, count: self.size() };
        self.begin_in(all, operands).await
    }

    /// Starts the next call of a team that includes this PE. Every PE makes the same number of
    /// calls. A PE may have several calls in progress if their buffers are symmetric and different,
    /// and their algorithms use no scratch memory.
    pub async fn begin_in<'c>(&'c self, team: Ranks, operands: Operands<'c>) -> Call<'c> {
        let call = self.calls.replace(self.calls.get() + 1);
        self.world.costs.begin(self.world.site(self.rank)).await;
        Call::new(self.world, (self.rank, team), call, operands)
    }

    /// Returns the PE's part in asynchronous broadcasts. Each PE has one.
    #[must_use]
    pub fn listener(&self) -> Listener<'w> {
        Listener::new(self.world, self.rank)
    }

    /// Waits, at no cost, until all PEs have called this. It separates timed calls.
    pub async fn align(&self) {
        self.world.align(self.rank).await;
    }

    /// Computes for a time.
    pub async fn work(&self, time_ns: f64) {
        self.world.engine.sleep(crate::engine::picoseconds(time_ns)).await;
    }

    /// Computes for a time while calls of this PE make progress. The time for which their messages
    /// occupy the processor is added.
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

    /// Reads a peer's part of the symmetric heap, at once and at no cost. Checks use it.
    #[must_use]
    pub fn heap_of(&self, peer: Rank, at: usize, bytes: usize) -> Vec<u8> {
        self.world.local(peer).read(consort_fabric::Span::heap(at, bytes))
    }

    /// Writes a peer's part of the symmetric heap, at once and at no cost. Checks use it.
    pub fn set_heap_of(&self, peer: Rank, at: usize, data: &[u8]) {
        self.world.local(peer).write(consort_fabric::Place::Heap, at, data);
    }
}
