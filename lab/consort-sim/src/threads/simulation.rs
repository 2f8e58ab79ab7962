//! A simulation of threads on a described machine.

use std::{
    cell::Cell,
    fmt::Write as _,
    pin::Pin,
    rc::Rc,
    task::{Context, Waker},
};

use super::{
    costs::Costs,
    lines::Cores,
    sections::PrivateSections,
    tally::Tally,
    thread::SimulatedThread,
    world::{WaitsFor, World},
};
use crate::{
    engine::{Engine, Time, What, picoseconds},
    machines::{Kind, Machine},
};

/// The largest delay of an operation in explored schedules, in nanoseconds.
const RANDOM_DELAY_NS: f64 = 200.0;
/// The longest virtual time of a simulation that ends by itself, in nanoseconds.
const LONGEST_NS: f64 = 1e9;

/// The settings of a simulation of threads.
#[derive(Clone, Debug)]
pub struct ThreadSimulation {
    machine: Machine,
    /// The hardware thread of each thread.
    placement: Vec<u32>,
    seed: u64,
    explored: bool,
    sections: Option<PrivateSections>,
}

/// The reason why a simulation of threads did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThreadsError {
    /// The machine's description does not have the costs of threads that share words.
    #[error("the description of {0} has no costs of threads that share words")]
    Undescribed(String),
    /// The machine does not have this hardware thread.
    #[error("{machine} has {most} hardware threads, so thread {requested} does not exist")]
    NoSuchThread {
        /// The machine.
        machine: String,
        /// The number of its hardware threads.
        most: u32,
        /// The requested hardware thread, from 0.
        requested: u32,
    },
    /// Threads wait for each other.
    #[error("deadlock after {after_ns} ns (seed {seed}):{}", listed(.waiting))]
    Deadlock {
        /// The virtual time, in nanoseconds.
        after_ns: u64,
        /// The seed with which it occurs.
        seed: u64,
        /// The waiting threads, and what each waits for.
        waiting: Vec<(u32, WaitsFor)>,
    },
    /// Threads run without an end.
    #[error("no end after {after_ns} ns (seed {seed}); waiting threads:{}", listed(.waiting))]
    Endless {
        /// The virtual time, in nanoseconds.
        after_ns: u64,
        /// The seed with which it occurs.
        seed: u64,
        /// The waiting threads, and what each waits for.
        waiting: Vec<(u32, WaitsFor)>,
    },
}

fn listed(waiting: &[(u32, WaitsFor)]) -> String {
    waiting.iter().fold(String::new(), |mut text, (thread, what)| {
        let _ = write!(text, " thread {thread} waits for {what};");
        text
    })
}

/// The results of a simulation of threads.
#[derive(Clone, Debug)]
pub struct ThreadsOutcome<R> {
    /// The value that each thread returned, or `None` if it had not ended.
    pub results: Vec<Option<R>>,
    /// The tally of each thread for the measured time.
    pub tallies: Vec<Tally>,
    /// The measured virtual time, in nanoseconds.
    pub measured_ns: f64,
    /// The number of events.
    pub events: u64,
}

impl ThreadSimulation {
    /// Returns a simulation of threads on the first hardware threads of a machine.
    #[must_use]
    pub fn on(machine: Machine, threads: u32) -> Self {
        Self {
            machine,
            placement: (0..threads).collect(),
            seed: 0,
            explored: false,
            sections: None,
        }
    }

    /// Sets the hardware thread of each thread.
    #[must_use]
    pub fn placed(mut self, placement: Vec<u32>) -> Self {
        self.placement = placement;
        self
    }

    /// Sets the seed; the default is 0.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes all operations take random times, for random schedules.
    #[must_use]
    pub const fn explored(mut self) -> Self {
        self.explored = true;
        self
    }

    /// Announces that only these sections access their data. If stores overlap, this saves fences.
    #[must_use]
    pub fn with_sections(mut self, sections: PrivateSections) -> Self {
        self.sections = Some(sections);
        self
    }

    fn world(&self) -> Result<World, ThreadsError> {
        let undescribed = || ThreadsError::Undescribed(self.machine.name.clone());
        let Kind::Coherent(machine) = &self.machine.kind else { return Err(undescribed()) };
        let costs = Costs::new(machine).ok_or_else(undescribed)?;
        let most = machine.threads();
        if let Some(&requested) = self.placement.iter().find(|&&requested| requested >= most) {
            let machine = self.machine.name.clone();
            return Err(ThreadsError::NoSuchThread { machine, most, requested });
        }
        assert!(costs.cores() <= Cores::MOST, "a machine of {} cores", costs.cores());
        let a_core = machine.layout.threads_per_core();
        let cores: Vec<u32> = self.placement.iter().map(|thread| thread / a_core).collect();
        let threads = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        let engine = Engine::new(threads, self.seed, self.explored);
        let random_delay = if self.explored { picoseconds(RANDOM_DELAY_NS) } else { 0 };
        Ok(World::new(engine, costs, &cores, random_delay, self.sections.clone()))
    }

    /// Runs `program` on every thread until all threads but servers have ended.
    ///
    /// # Errors
    /// When threads wait for each other or run for a second of virtual time, or the machine has
    /// fewer hardware threads or no costs for them.
    pub fn run<R>(
        &self,
        program: impl AsyncFn(SimulatedThread) -> R,
    ) -> Result<ThreadsOutcome<R>, ThreadsError> {
        self.simulate(program, 0, None)
    }

    /// Runs `program` on every thread for a time, after a warm-up that is not measured.
    ///
    /// # Errors
    /// As [`ThreadSimulation::run`].
    pub fn run_for<R>(
        &self,
        warm_up_ns: f64,
        measured_ns: f64,
        program: impl AsyncFn(SimulatedThread) -> R,
    ) -> Result<ThreadsOutcome<R>, ThreadsError> {
        let begin = picoseconds(warm_up_ns);
        self.simulate(program, begin, Some(begin + picoseconds(measured_ns)))
    }

    fn simulate<R>(
        &self,
        program: impl AsyncFn(SimulatedThread) -> R,
        begin: Time,
        end: Option<Time>,
    ) -> Result<ThreadsOutcome<R>, ThreadsError> {
        let world = Rc::new(self.world()?);
        let results: Vec<Cell<Option<R>>> =
            self.placement.iter().map(|_| Cell::new(None)).collect();
        let program = &program;
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for (me, result) in (0..).zip(&results) {
            let thread = SimulatedThread::new(Rc::clone(&world), me);
            tasks.push(Box::pin(async move { result.set(Some(program(thread).await)) }));
        }
        let (tallies, measured_ns) = self.run_tasks(&world, tasks, begin, end)?;
        Ok(ThreadsOutcome {
            tallies,
            measured_ns,
            events: world.engine.happened(),
            results: results.into_iter().map(Cell::into_inner).collect(),
        })
    }

    /// Runs one task on each thread, from time 0. Returns what each thread did between `begin` and
    /// `end`, and the nanoseconds between them.
    fn run_tasks(
        &self,
        world: &World,
        tasks: Vec<Task<'_>>,
        begin: Time,
        end: Option<Time>,
    ) -> Result<(Vec<Tally>, f64), ThreadsError> {
        // A task that has ended is removed.
        let mut tasks: Vec<Option<Task<'_>>> = tasks.into_iter().map(Some).collect();
        let mut context = Context::from_waker(Waker::noop());
        let engine = &world.engine;
        let last = end.unwrap_or_else(|| picoseconds(LONGEST_NS));
        let tallies = || (0..).zip(&world.threads).map(|(me, _)| *world.tally(me)).collect();
        let mut before = vec![Tally::default(); tasks.len()];
        let mut checkpoint = if begin > 0 { begin } else { last };
        engine.set_horizon(checkpoint);
        for (task, _) in (0..).zip(&tasks) {
            engine.at(0, What::Resume(task));
        }
        while tasks
            .iter()
            .zip(&world.threads)
            .any(|(task, thread)| task.is_some() && !thread.is_server.get())
        {
            if engine.next_at().is_some_and(|next| next > checkpoint) {
                if checkpoint == last && end.is_some() {
                    break;
                }
                if checkpoint == last {
                    return Err(ThreadsError::Endless {
                        after_ns: engine.now() / 1000,
                        seed: self.seed,
                        waiting: waiting(world, &tasks),
                    });
                }
                before = tallies();
                checkpoint = last;
                engine.set_horizon(last);
            }
            match engine.next() {
                None => {
                    return Err(ThreadsError::Deadlock {
                        after_ns: engine.now() / 1000,
                        seed: self.seed,
                        waiting: waiting(world, &tasks),
                    });
                }
                Some(What::Arrive(number)) => {
                    if world.traffic.borrow().is_message(number) {
                        world.deliver(number);
                    } else {
                        world.arrive(number);
                    }
                }
                Some(What::Resume(task)) => {
                    let place = &mut tasks[task as usize];
                    let Some(future) = place else { continue };
                    if future.as_mut().poll(&mut context).is_ready() {
                        *place = None;
                    }
                }
            }
        }
        let now: Vec<Tally> = tallies();
        let measured_ns = (end.unwrap_or_else(|| engine.now()) - begin) as f64 / 1e3;
        Ok((now.into_iter().zip(before).map(|(now, then)| now - then).collect(), measured_ns))
    }
}

/// The program of one simulated thread.
type Task<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;

/// Returns the waiting threads, and what each waits for.
fn waiting(world: &World, tasks: &[Option<Task<'_>>]) -> Vec<(u32, WaitsFor)> {
    let threads = (0..).zip(world.threads.iter().zip(tasks));
    let waits =
        |(number, (thread, task)): (u32, (&super::world::ThreadState, &Option<Task<'_>>))| {
            let what = thread.waits_for.get().filter(|_| task.is_some())?;
            Some((number, what))
        };
    threads.filter_map(waits).collect()
}
