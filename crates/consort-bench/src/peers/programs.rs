//! Libraries that are measured by separate programs, launched between the rounds of a run.
//!
//! A program times blocks of calls in a row on one buffer that is reused and not rewritten. It has
//! its own threads or processes, and the options for Consort do not affect it. Between two rounds,
//! each program is launched once, between two readings of the transfer. If the readings agree, the
//! blocks of the launch have their class; otherwise the blocks count only if no launch has a class.
//!
//! If there are programs, they get half of the budget, in equal parts for each available library. A
//! program is launched again unless it has used a larger share of its time than the rounds of
//! theirs. So a program that takes long to start has fewer launches, but these are also spread over
//! the run. A library that fails once has no figures, only a reason.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Result;
use consort::{launch::Fabric, tune::Collective};
use consort_machine::{affinity::CpuId, topology::Topology};

use super::printed::PrintedOutput;
use crate::{
    harness::{Block, Communication, Figure, Mode, RunSettings, Timing, is_sure},
    limits::{Limits, readings_agree, transfer_ns},
    units::in_a_line,
};

/// The time of a reading of the transfer.
const TRANSFER_SLICE: Duration = Duration::from_micros(500);

/// Launches a program for figures of these sizes; the flag ends it.
type LaunchFn = Box<dyn Fn(&[u64], &AtomicBool) -> Result<PrintedOutput>>;

/// A library, or one way to use it.
pub struct PeerRow {
    blank: Figure,
    /// The sizes of a launch in bytes; 0 for a barrier.
    sizes: Vec<u64>,
    /// The program, or the reason why there are no figures.
    program: Result<LaunchFn, String>,
    /// The times of each size.
    timings: Vec<Timing>,
    launches: usize,
    budget: Duration,
    spent: Duration,
}

impl PeerRow {
    /// Creates the row of a program for figures like `blank`, which names the library, of these
    /// sizes.
    pub(super) fn new(
        blank: Figure,
        sizes: &[u64],
        launch: impl Fn(&[u64], &AtomicBool) -> Result<PrintedOutput> + 'static,
    ) -> PeerRow {
        let program: LaunchFn = Box::new(launch);
        PeerRow { program: Ok(program), ..PeerRow::absent(blank, sizes, String::new()) }
    }

    /// Creates the row of a library that cannot be measured.
    pub(super) fn absent(blank: Figure, sizes: &[u64], why: String) -> PeerRow {
        PeerRow {
            blank,
            sizes: sizes.to_vec(),
            program: Err(why),
            timings: vec![Timing::default(); sizes.len()],
            launches: 0,
            budget: Duration::ZERO,
            spent: Duration::ZERO,
        }
    }

    /// Returns the program, if it is due when the rounds have spent this share of their time.
    fn due(&self, share: f64) -> Option<&LaunchFn> {
        let is_due = self.launches == 0 || self.spent <= self.budget.mul_f64(share.min(1.0));
        self.program.as_ref().ok().filter(|_| is_due)
    }

    /// Adds the figures of a launch, during which the transfer had this time.
    fn add(&mut self, printed: Result<PrintedOutput>, transfer_ns: Option<f64>) {
        match printed {
            Ok(PrintedOutput { library, figures }) => {
                self.blank.peer = library.or(self.blank.peer.take());
                for (timing, (_, samples)) in self.timings.iter_mut().zip(figures) {
                    let launch = self.launches;
                    let block =
                        |ns| Block { ns, p99_ns: ns, transfer_ns, launch, ..Block::default() };
                    timing.blocks.extend(samples.into_iter().map(block));
                }
            }
            Err(error) => self.program = Err(in_a_line(&error)),
        }
        self.launches += 1;
    }

    fn figures(&self, run: &RunSettings, limits: &Limits) -> Vec<Figure> {
        let of_size = |bytes: u64| {
            let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0);
            Figure { bytes, ..self.blank.clone() }
        };
        match (&self.program, &self.sizes[..]) {
            (Err(why), sizes) => {
                let bytes = if let &[bytes] = sizes { bytes } else { 0 };
                vec![Figure { absent: Some(why.clone()), ..of_size(bytes) }]
            }
            (Ok(_), sizes) => sizes
                .iter()
                .zip(&self.timings)
                .flat_map(|(&bytes, timing)| {
                    run.figures_of(&of_size(bytes), &with_classes(timing), limits)
                })
                .collect(),
        }
    }
}

/// Returns the blocks that have a class, or all if none has.
fn with_classes(timing: &Timing) -> Timing {
    let mut timing = timing.clone();
    let all = timing.blocks.len();
    if timing.blocks.iter().any(|block| block.class().is_some()) {
        timing.blocks.retain(|block| block.class().is_some());
    }
    timing.discarded = all - timing.blocks.len();
    timing
}

/// Returns a figure of a program, without times. `fabric` is the program's name for the PEs.
pub(super) fn blank(what: Communication, pes: u32, fabric: &'static str, peer: String) -> Figure {
    let fits = Topology::discover().placement(pes as usize).is_some();
    Figure {
        fabric: fabric.into(),
        peer: Some(peer),
        sync: match what {
            Communication::Collective(Collective::Barrier) => Some("strict".to_owned()),
            // When a call returns, its buffers belong to the caller again.
            Communication::Collective(_) => Some("mine".to_owned()),
            Communication::PointToPoint(_) => None,
        },
        placement: if fits { "bound to cores" } else { "unbound" }.to_owned(),
        is_program: true,
        ..Figure::of(what.name(), pes, Mode::Throughput)
    }
}

/// The programs of a run.
pub struct Programs {
    rows: Vec<PeerRow>,
    /// The cores of PEs 0 and 1, if each PE has a core.
    cpus: Option<[CpuId; 2]>,
}

impl Programs {
    /// Creates the rows of all libraries, in a run of `pes` PEs with this budget. If the launcher
    /// of an MPI places the PEs, no transfer between two cores shows how near they are.
    pub fn new(
        (fabric, pes): (Fabric, u32),
        budget: Duration,
        libraries: Vec<Vec<PeerRow>>,
    ) -> Programs {
        let is_there = |rows: &&Vec<PeerRow>| rows.iter().any(|row| row.program.is_ok());
        let of_each = budget.div_f64(2.0 * libraries.iter().filter(is_there).count().max(1) as f64);
        let shared = |mut rows: Vec<PeerRow>| {
            let budget = of_each.div_f64(rows.len().max(1) as f64);
            rows.iter_mut().for_each(|row| row.budget = budget);
            rows
        };
        let rows = libraries.into_iter().flat_map(shared).collect();
        let is_here = fabric.shape().is_none();
        let cpus = Topology::discover().placement(pes as usize).filter(|_| is_here);
        Programs { rows, cpus: cpus.and_then(|cpus| cpus.first_chunk().copied()) }
    }

    /// Returns the programs' part of the run's budget.
    pub fn budget(&self) -> Duration {
        self.rows.iter().filter(|row| row.program.is_ok()).map(|row| row.budget).sum()
    }

    /// Launches the programs that are due when the rounds have spent this share of their time.
    pub fn launch(&mut self, share: f64, stop: &AtomicBool) {
        let mut before = None;
        // Relaxed: the flag publishes no other data.
        let is_stopped = || stop.load(Relaxed);
        for row in &mut self.rows {
            if is_stopped() {
                return;
            }
            let Some(program) = row.due(share) else { continue };
            let begun = Instant::now();
            before = before.or_else(|| transfer(self.cpus));
            let printed = program(&row.sizes, stop);
            // Then it was killed, which is not the program's fault.
            if printed.is_err() && is_stopped() {
                return;
            }
            let after = transfer(self.cpus);
            let same = before.zip(after).filter(|&(a, b)| readings_agree(a, b));
            row.add(printed, same.map(|(a, b)| f64::midpoint(a, b)));
            row.spent += begun.elapsed();
            before = after;
        }
    }

    /// Returns whether all medians are precise.
    pub fn are_sure(&self) -> bool {
        let sure = |row: &PeerRow| row.program.is_err() || row.timings.iter().all(is_sure);
        self.rows.iter().all(sure)
    }

    /// Returns the figures of each library and size, or the reasons why there are none.
    pub fn figures(&self, run: &RunSettings, limits: &Limits) -> Vec<Figure> {
        self.rows.iter().flat_map(|row| row.figures(run, limits)).collect()
    }
}

fn transfer(cpus: Option<[CpuId; 2]>) -> Option<f64> {
    let [a, b] = cpus?;
    transfer_ns(a, b, TRANSFER_SLICE).ok()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use anyhow::anyhow;
    use consort::{Waiting, launch::ProcessShape};
    use consort_tuner::TransferClass;

    use super::*;
    use crate::harness::{Conditions, Session};

    const REDUCE: Communication = Communication::Collective(Collective::Reduce);

    fn run() -> RunSettings {
        let session = Session {
            fabric: Fabric::Threads,
            pes: 2,
            waiting: None,
            work: Vec::new(),
            mode: Mode::Latency,
            budget: Duration::ZERO,
        };
        let conditions = Conditions::default();
        RunSettings::new(REDUCE, &session, conditions, false, Waiting::SpinYield)
    }

    fn row(launch: impl Fn(&[u64], &AtomicBool) -> Result<PrintedOutput> + 'static) -> PeerRow {
        let blank = blank(REDUCE, 2, "threads", "a library".to_owned());
        PeerRow::new(blank, &[8, 64], launch)
    }

    fn printed(ns: f64) -> PrintedOutput {
        PrintedOutput { library: None, figures: vec![(8, vec![ns, ns]), (64, vec![10.0 * ns])] }
    }

    #[test]
    fn figures_are_grouped_by_size_and_class() {
        let mut row = row(|_, _| unreachable!("it is not launched here"));
        row.add(Ok(printed(100.0)), Some(20.0));
        row.add(
            Ok(PrintedOutput { library: Some("LIB 3".to_owned()), ..printed(110.0) }),
            Some(20.0),
        );
        row.add(Ok(printed(900.0)), Some(180.0));
        row.add(Ok(printed(5000.0)), None);
        let figures = row.figures(&run(), &Limits::default());
        let shown: Vec<_> = figures
            .iter()
            .map(|one| (one.bytes, one.c2c_class, one.median_ns, one.reps, one.launches))
            .collect();
        let (near, far) = (Some(TransferClass::Near), Some(TransferClass::Far));
        let expected = [
            (Some(8), near, Some(105.0), 4, Some(2)),
            (Some(8), far, Some(900.0), 2, Some(1)),
            (Some(64), near, Some(1050.0), 2, Some(2)),
            (Some(64), far, Some(9000.0), 1, Some(1)),
        ];
        assert_eq!(shown, expected);
        assert!(figures.iter().all(|one| one.peer.as_deref() == Some("LIB 3")));
        assert!(figures.iter().all(|one| one.mode == "throughput"));
        assert_eq!((figures[0].discarded, figures[0].ratio_to_limit), (2, Some(5.25)));
        assert_eq!(figures[0].p99_ns, Some(110.0), "of the blocks, though the mode is latency");
    }

    #[test]
    fn launches_without_a_class_count_where_none_has_one() {
        let mut row = row(|_, _| unreachable!("it is not launched here"));
        row.add(Ok(printed(100.0)), None);
        let figures = row.figures(&run(), &Limits::default());
        assert_eq!((figures.len(), figures[0].c2c_class), (2, None));
        assert_eq!((figures[0].median_ns, figures[0].discarded), (Some(100.0), 0));
    }

    #[test]
    fn failure_is_final_and_one_line() {
        let launched = Rc::new(Cell::new(0));
        let count = Rc::clone(&launched);
        let fails = row(move |sizes, _| {
            assert_eq!(sizes, [8, 64]);
            count.set(count.get() + 1);
            if count.get() > 1 { Err(anyhow!("it\nhangs")) } else { Ok(printed(1.0)) }
        });
        let mut programs =
            Programs::new((Fabric::Threads, 1), Duration::from_secs(60), vec![vec![fails]]);
        for share in [0.5, 0.6, 0.7] {
            programs.launch(share, &AtomicBool::new(false));
        }
        assert_eq!(launched.get(), 2);
        assert!(programs.are_sure(), "nothing more is known of it later");
        let figures = programs.figures(&run(), &Limits::default());
        let [figure] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!((figure.absent.as_deref(), figure.median_ns), (Some("it hangs"), None));
    }

    #[test]
    fn transfers_are_not_read_if_a_launcher_places_pes() {
        let fabric = Fabric::Mpi(ProcessShape::SINGLE);
        assert!(Programs::new((fabric, 2), Duration::ZERO, Vec::new()).cpus.is_none());
    }

    /// In a run of 4 s, two libraries get 1 s each, and the two rows of one get half of it each.
    #[test]
    fn launches_keep_to_their_share_of_the_budget() {
        let rows = || vec![row(|_, _| Ok(printed(1.0))), row(|_, _| Ok(printed(1.0)))];
        let mut alone = rows();
        alone.truncate(1);
        let none = vec![PeerRow::absent(Figure::default(), &[], "it is not here".to_owned())];
        let libraries = vec![none, alone, rows()];
        let mut programs = Programs::new((Fabric::Threads, 1), Duration::from_secs(4), libraries);
        programs.rows.remove(0);
        let budgets: Vec<f64> = programs.rows.iter().map(|row| row.budget.as_secs_f64()).collect();
        assert_eq!(budgets, [1.0, 0.5, 0.5]);
        assert_eq!(programs.budget(), Duration::from_secs(2));
        let row = &mut programs.rows[0];
        assert!(row.due(0.0).is_some(), "the first launch is made in any case");
        (row.launches, row.spent) = (1, Duration::from_millis(400));
        assert!(row.due(0.3).is_none() && row.due(0.5).is_some());
        row.spent = Duration::from_millis(1200);
        assert!(row.due(9.0).is_none(), "a run that takes longer gives no more");
        assert!(!programs.are_sure());
        for row in &mut programs.rows {
            (0..8).for_each(|_| row.add(Ok(printed(1.0)), None));
        }
        assert!(programs.are_sure());
    }
}
