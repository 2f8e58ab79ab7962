//! Measures a collective, or operations between two PEs.
//!
//! All algorithms, sizes and peers are timed in turn in successive launches, with measurements of
//! the limits in between, so that all of them see the same changes of the machine. MPI and OpenMP
//! have separate programs, which are also launched in between.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use consort_bench::{
    harness::{Communication, Conditions, Rounds, RunSettings, Session, sizes_bytes},
    peers::{mpi, openmp, programs::Programs},
};
use consort_console::{
    interrupt,
    output::{self, progress::Progress},
};

use super::{peers::Peers, presenter::Presenter, text};

/// Smaller sizes are bound by the transfer, and the clock is too coarse for their bandwidth.
const LEAST_BULK_BYTES: usize = 1024;

/// Work, the conditions of its timing, and the libraries to compare with.
pub(super) struct Plan {
    pub(super) what: Communication,
    pub(super) session: Session,
    pub(super) conditions: Conditions,
    /// Whether the buffers are in symmetric memory.
    pub(super) symmetric: bool,
    pub(super) peers: Peers,
}

impl Plan {
    /// Measures, shows the results, and returns the part that takes time regardless of the budget.
    pub(super) fn measure(self, presenter: &Presenter<'_>) -> Result<String> {
        let stop = &*presenter.measurement.stop;
        let mut sizes = sizes_bytes(&self.session.work);
        let mut programs = self.programs(&sizes, stop);
        let Self { what, mut session, conditions, symmetric, .. } = self;
        sizes.retain(|&bytes| bytes >= LEAST_BULK_BYTES);
        session.budget -= programs.budget();
        let rounds =
            Rounds { session, conditions, limits: what.limits(), sizes_bytes: &sizes, stop };
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

        let session = &rounds.session;
        let run = RunSettings::new(what, session, conditions, symmetric, collected.waiting);
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
        figures.extend(run.limit_figures(&sizes, &collected));
        presenter.show_with_page(&collected.switches, &figures, &text::page(&run, &figures))?;
        Ok(output::overrun::parts([
            (format!("a launch of {} kinds of work", session.work.len()), collected.longest_launch),
            ("the machine's limits".to_owned(), collected.limits_time),
            ("other programs".to_owned(), programs_time),
        ]))
    }

    /// Returns the programs to compare with; `stop` ends their compilers.
    fn programs(&self, sizes: &[usize], stop: &AtomicBool) -> Programs {
        let Session { fabric, pes, budget, .. } = self.session;
        let mut libraries = Vec::new();
        if let Communication::Collective(what) = self.what {
            let of_openmp = |&library| openmp::rows(library, what, pes, sizes, stop);
            libraries.extend(self.peers.openmp.iter().map(of_openmp));
        }
        let is_here = fabric.shape().is_none();
        let rows = mpi::rows(self.what, (pes, is_here), sizes, &self.peers.mpiruns, stop);
        libraries.extend(rows.into_iter().map(|row| vec![row]));
        Programs::new((fabric, pes), budget, libraries)
    }
}
