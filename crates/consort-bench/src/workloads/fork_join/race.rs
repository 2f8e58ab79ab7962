//! Launches of all libraries in turn.
//!
//! A condition is established once for all rounds. In each round each library has one launch of a
//! program, in random order. There is at least one round. The interval of a time is over the
//! launches' medians.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort_fabric::statistics::{Summary, launches, median};
use consort_machine::topology::Topology;

use super::{
    condition::Condition,
    launch::{LaunchOutcome, ProgramLaunch},
    program::ForkJoinProgram,
};
use crate::{
    harness::{Figure, Mode, hundredths},
    peers::fork_join::{NativeLibrary, Runtime},
    rng::Rng,
    units::in_a_line,
};

/// The longest and the shortest measuring time of a launch.
const LAUNCH: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(20)];
/// The number of rounds that the budget is planned for.
const ROUNDS: u32 = 8;

/// The settings of a measurement.
#[derive(Clone, Copy)]
pub struct Race<'r> {
    /// The program.
    pub program: ForkJoinProgram,
    /// The condition.
    pub condition: Condition,
    /// The libraries.
    pub runtimes: &'r [&'static Runtime],
    /// Those in C and C++.
    pub native: &'r NativeLibraries,
    /// The number of threads, before the condition changes it.
    pub threads: u32,
    /// The approximate measuring time.
    pub budget: Duration,
    /// Ends it with the current launch once it is set.
    pub stop: &'r AtomicBool,
}

/// The compiled libraries in C and C++.
#[derive(Default)]
pub struct NativeLibraries {
    compiled: Vec<NativeLibrary>,
    /// Those that could not be compiled, with the reason.
    absent: BTreeMap<&'static str, String>,
}

impl NativeLibraries {
    /// Compiles what these libraries need, until `stop` is set.
    pub fn compile(runtimes: &[&'static Runtime], stop: &AtomicBool) -> Self {
        let mut all = Self::default();
        for runtime in runtimes {
            match runtime.compile(&all.compiled, stop) {
                Ok(library) => all.compiled.extend(library),
                Err(why) => drop(all.absent.insert(runtime.name, in_a_line(&why))),
            }
        }
        all
    }
}

/// The times of a program with all libraries.
pub struct Results {
    pub(super) program: ForkJoinProgram,
    pub(super) condition: Condition,
    pub(super) threads: u32,
    /// The processor of each thread, if each has one.
    pub(super) cpus: Option<Vec<u32>>,
    pub(super) rows: Vec<Row>,
    /// The libraries and the condition that were not measured, with the reason.
    pub(super) absent: BTreeMap<&'static str, String>,
}

/// The times of a program with a library.
pub(super) struct Row {
    pub(super) runtime: &'static Runtime,
    pub(super) launches: usize,
    pub(super) times: Summary,
    pub(super) mean_ns: f64,
    pub(super) busy_cores: Option<f64>,
}

impl Race<'_> {
    /// Measures. A library that fails is absent, and so is a condition that cannot be established.
    pub fn run(&self) -> Results {
        let threads = self.condition.threads(self.threads);
        let topology = Topology::discover();
        // Other processes run where the system puts them, and threads must be able to avoid them.
        let is_quiet = self.condition == Condition::Quiet;
        let cpus = topology.placement(threads as usize).filter(|_| is_quiet);
        let cpus: Option<Vec<u32>> = cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect());
        let mut absent = self.native.absent.clone();
        absent.retain(|name, _| self.runtimes.iter().any(|runtime| runtime.name == *name));
        let mut outcomes: Vec<Vec<LaunchOutcome>> = vec![Vec::new(); self.runtimes.len()];
        match self.condition.establish() {
            Ok(established) => {
                let launch = ProgramLaunch {
                    runtime: String::new(),
                    program: self.program,
                    threads: threads as usize,
                    cpus: cpus.clone(),
                    time: self.launch_time(),
                    compiled_library: None,
                    group: established.group.clone(),
                };
                self.rounds(&launch, &mut outcomes, &mut absent);
            }
            Err(why) => drop(absent.insert(self.condition.name(), in_a_line(&why))),
        }
        let rows = self.runtimes.iter().zip(&outcomes);
        let rows = rows.filter(|(runtime, _)| !absent.contains_key(runtime.name));
        let rows = rows.filter_map(|(runtime, outcomes)| Row::of(runtime, outcomes)).collect();
        let Self { program, condition, .. } = *self;
        Results { program, condition, threads, cpus, rows, absent }
    }

    /// Returns the measuring time of a launch. Under a quota it has several periods.
    fn launch_time(&self) -> Duration {
        let count = u32::try_from(self.runtimes.len()).unwrap_or(u32::MAX).max(1);
        let shortest = if self.condition == Condition::HalfQuota { LAUNCH[0] } else { LAUNCH[1] };
        (self.budget / count / ROUNDS).clamp(shortest, LAUNCH[0])
    }

    /// Starts launches until the budget is spent.
    fn rounds(
        &self,
        launch: &ProgramLaunch,
        outcomes: &mut [Vec<LaunchOutcome>],
        absent: &mut BTreeMap<&'static str, String>,
    ) {
        let mut order: Vec<usize> = (0..self.runtimes.len()).collect();
        let (mut rng, begun) = (Rng(self.threads.into()), Instant::now());
        // Relaxed: the flag publishes no other data.
        let goes_on = || !self.stop.load(Relaxed);
        loop {
            order.retain(|&index| !absent.contains_key(self.runtimes[index].name));
            rng.shuffle(&mut order);
            for &index in order.iter().take_while(|_| goes_on()) {
                let runtime = self.runtimes[index];
                let library = runtime.find_library(&self.native.compiled);
                let launch = ProgramLaunch {
                    runtime: runtime.name.to_owned(),
                    compiled_library: library.map(|library| library.path().to_owned()),
                    ..launch.clone()
                };
                match launch.start(self.stop) {
                    Ok(outcome) => outcomes[index].push(outcome),
                    Err(why) if goes_on() => drop(absent.insert(runtime.name, in_a_line(&why))),
                    Err(_) => {}
                }
            }
            if !goes_on() || order.is_empty() || begun.elapsed() >= self.budget {
                return;
            }
        }
    }
}

impl Row {
    /// Summarizes launches; `None` if there are none.
    fn of(runtime: &'static Runtime, outcomes: &[LaunchOutcome]) -> Option<Self> {
        let samples: Vec<Vec<f64>> = outcomes.iter().map(|it| it.samples_ns.clone()).collect();
        let times = launches::summary(&samples)?;
        let mut means: Vec<f64> = outcomes.iter().map(|it| it.mean_ns).collect();
        let busy: Option<Vec<f64>> = outcomes.iter().map(|it| it.busy_cores).collect();
        Some(Self {
            runtime,
            launches: outcomes.len(),
            times,
            mean_ns: median(&mut means),
            busy_cores: busy.map(|mut busy| median(&mut busy)),
        })
    }
}

impl Results {
    /// Returns whether no library was measured.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns a figure for each library, and one without times for each absent one.
    pub fn figures(&self) -> Vec<Figure> {
        let placement = if self.cpus.is_some() { "one PE a core" } else { "unpinned" };
        let blank = Figure {
            placement: placement.to_owned(),
            ..Figure::of(self.program.name(), self.threads, Mode::Throughput)
        };
        let of_row = |row: &Row| {
            let Runtime { name, is_ours, .. } = row.runtime;
            let condition = self.condition.name();
            let (algorithm, peer) = match is_ours {
                true => (format!("{condition}, {name}"), None),
                false => (condition.to_owned(), Some(*name)),
            };
            Figure {
                algorithm: Some(algorithm),
                peer: peer.map(str::to_owned),
                mean_ns: Some(hundredths(row.mean_ns)),
                busy_cores: row.busy_cores.map(hundredths),
                launches: Some(row.launches),
                ..blank.clone().with(&row.times)
            }
        };
        let of_absent = |(name, why): (&&str, &String)| {
            let (peer, absent) = (Some((*name).to_owned()), Some(why.clone()));
            Figure { peer, absent, ..blank.clone() }
        };
        self.rows.iter().map(of_row).chain(self.absent.iter().map(of_absent)).collect()
    }
}
