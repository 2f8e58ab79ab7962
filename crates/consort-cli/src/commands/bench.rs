//! `consort bench`: times a collective, or operations of one PE on the memory of another, together
//! with the machine's limits and its peers.
//!
//! All algorithms, sizes and peers are timed in turn in one launch after another, with readings of
//! the limits in between, so that all of them see the same changes of the machine. MPI and OpenMP
//! are programs of their own, which are launched in between too.
//!
//! 1. `arguments`: the arguments; `options`: the checked arguments, as a list of work;
//! 2. `text`: the tables for people; `present`: the results for people and programs; `compare`: those
//!    of an earlier run next to them;
//! 3. `counting`: workloads with counting puts;
//! 4. `online`, `overlap`, `look_up`, `region`, `sharing`, `openshmem`: refined choices,
//!    computation during a broadcast, compiled wisdom, parallel regions, cores that others use too,
//!    routines of C;
//! 5. `critical_sections`: locks and delegation, stacks and queues.

mod arguments;
mod compare;
mod counting;
mod critical_sections;
mod look_up;
mod online;
mod openshmem;
mod options;
mod overlap;
mod present;
mod region;
mod sharing;
mod text;

use consort_console::{
    interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
    refuse,
};
use std::{
    process::ExitCode,
    rc::Rc,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use consort::Fabric;
use consort_bench::{
    harness::{Communication, Pattern, Rounds, Run, Session},
    peers::{mpi, openmp, programs::Programs},
};

use arguments::What;
pub(crate) use arguments::{Bench, names};
use compare::Old;
use options::Options;

/// The exit status where something is slower than it may be.
const COMPARISON_FAILED: u8 = 3;

impl Bench {
    /// Checks the options, measures and prints, also what was measured before an interrupt.
    ///
    /// # Errors
    /// When options contradict each other, nothing could be measured, or the output file cannot be
    /// written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        let old = self.compare.as_deref().map(Old::read).transpose()?.map(Rc::new);
        let ended = Self { old: old.clone(), ..self.clone() }.measured()?;
        // A comparison that failed is told after the results.
        match old.and_then(|old| old.failure.take()) {
            Some(why) => {
                output::complain(&format!("error: {why}"));
                Ok(ExitCode::from(COMPARISON_FAILED))
            }
            None => Ok(ended),
        }
    }

    fn measured(&self) -> Result<ExitCode> {
        if !matches!(self.what, What::CriticalSections(_))
            && let Some(option) = self.of_critical_sections()
        {
            refuse!("{option}: only lock, delegate, counter, stack and queue take it");
        }
        if !matches!(self.what, What::Communication(_)) && self.fabric != Fabric::Threads {
            let names = Pattern::EVERY.map(Pattern::name).join(", ");
            refuse!("--fabric: only collectives and {names} take it");
        }
        let most = self.pes.iter().copied().max().unwrap_or(u32::MAX);
        let measurement = &Measurement::begin(most, interrupt::stop_flag()?);
        let measured = match self.what {
            What::Communication(what) => self.communication(what, measurement),
            What::Counting(workload) => counting::run(self, workload, measurement),
            What::Online => online::run(self, measurement),
            What::Overlap => overlap::run(self, measurement),
            What::LookUp => look_up::run(self, measurement),
            What::Region => region::run(self, measurement),
            What::Sharing => sharing::run(self, measurement),
            What::OpenShmem => openshmem::run(self, measurement),
            What::CriticalSections(subject) => critical_sections::run(self, subject, measurement),
        };
        let why = match measured {
            Err(error) => return interrupt::ending_with(error, &measurement.stop),
            Ok(why) => why,
        };
        output::overrun::tell(measurement.elapsed(), self.budget, &why);
        Ok(interrupt::ending(&measurement.stop))
    }

    /// Measures a collective, or operations between two PEs, where an MPI's launcher has placed
    /// them. Returns what takes its time, whatever the budget.
    fn communication(&self, what: Communication, measurement: &Measurement) -> Result<String> {
        let pes = Options::of(self, what)?.session.pes;
        let fabric = measurement.found(self.fabric, pes)?;
        Self { fabric, ..self.clone() }.found(what, measurement)
    }

    fn found(&self, what: Communication, measurement: &Measurement) -> Result<String> {
        let stop = &*measurement.stop;
        let options = Options::of(self, what)?;
        let mut programs = self.programs(what, &options, stop);
        let budget = self.budget - programs.budget();
        let rounds = Rounds {
            session: Session { budget, ..options.session.clone() },
            conditions: options.conditions,
            limits: what.limits(),
            sizes_bytes: &options.bulk_bytes,
            stop,
        };
        let progress = Progress::new(what.name());
        let mut programs_time = Duration::ZERO;
        let collected = rounds.run(|share| {
            progress.show(share);
            let begun = Instant::now();
            programs.launch(share, stop);
            programs_time += begun.elapsed();
            programs.are_sure()
        })?;
        drop(progress);

        let Options { session, conditions, symmetric, .. } = &options;
        let run = Run::new(what, session, *conditions, *symmetric, collected.waiting);
        let mut figures = Vec::new();
        for (work, timing) in session.work.iter().zip(&collected.timings) {
            figures.extend(run.figures(work, timing, &collected.limits));
        }
        if !figures.iter().any(|figure| figure.is_ours() && figure.median_ns.is_some()) {
            let why = collected.timings.iter().find_map(|timing| timing.error.as_ref());
            bail!(
                "nothing was measured: {}",
                why.map_or_else(|| interrupt::why_nothing(stop).to_owned(), ToString::to_string)
            );
        }
        figures.extend(programs.figures(&run, &collected.limits));
        figures.extend(run.limit_figures(&options.bulk_bytes, &collected));
        figures.retain(|figure| self.class.shows(figure.c2c_class));
        self.tell(measurement, &collected.switches, &figures, &text::page(&run, &figures))?;
        Ok(output::overrun::parts([
            (format!("a launch of {} kinds of work", session.work.len()), collected.longest_launch),
            ("the machine's limits".to_owned(), collected.limits_time),
            ("other programs".to_owned(), programs_time),
        ]))
    }

    /// The programs to compare with; `stop` ends their compilers.
    fn programs(&self, what: Communication, options: &Options, stop: &AtomicBool) -> Programs {
        let (pes, sizes) = (options.session.pes, &options.sizes_bytes);
        let mut libraries = Vec::new();
        if let Communication::Collective(what) = what {
            let of_openmp = |&library| openmp::rows(library, what, pes, sizes, stop);
            libraries.extend(options.openmp.iter().map(of_openmp));
        }
        if options.mpi {
            let is_here = self.fabric.shape().is_none();
            let rows = mpi::rows(what, (pes, is_here), sizes, &self.mpi, stop);
            libraries.extend(rows.into_iter().map(|row| vec![row]));
        }
        Programs::new((self.fabric, pes), self.budget, libraries)
    }
}
