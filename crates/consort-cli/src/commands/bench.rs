//! `consort bench`: times a collective here, together with the machine's limits and its peers.
//!
//! All algorithms, sizes and peers are timed in turn in one launch after another, with readings of
//! the limits in between, so that all of them see the same changes of the machine. MPI and OpenMP
//! are programs of their own, which are launched in between too.
//!
//! 1. `arguments`: the arguments; `options`: the checked arguments, as a list of work;
//! 2. `text`: the tables for people;
//! 3. `counting`: workloads with counting puts;
//! 4. `online`, `overlap`, `look_up`, `region`, `sharing`: refined choices, computation during a
//!    broadcast, compiled wisdom, parallel regions, cores that others use too.

mod arguments;
mod counting;
mod look_up;
mod online;
mod options;
mod overlap;
mod region;
mod sharing;
mod text;

use anyhow::{Result, bail};
use consort::Collective;
use consort_bench::{
    harness::{Rounds, Run, Session, limits_of},
    peers::{mpi, openmp, programs::Programs},
};

use crate::output::{self, progress::Progress};
pub(crate) use arguments::Bench;
use arguments::What;
use options::Options;

impl Bench {
    /// Checks the options, measures and prints.
    ///
    /// # Errors
    /// When options contradict each other, nothing could be measured, or the output file cannot be
    /// written.
    pub(crate) fn run(&self) -> Result<()> {
        let what = match self.what {
            What::Collective(what) => what,
            What::Counting(workload) => return counting::run(self, workload),
            What::Online => return online::run(self),
            What::Overlap => return overlap::run(self),
            What::LookUp => return look_up::run(self),
            What::Region => return region::run(self),
            What::Sharing => return sharing::run(self),
        };
        let options = Options::of(self, what)?;
        let mut programs = self.programs(what, &options);
        let budget = self.budget - programs.budget();
        let rounds = Rounds {
            session: Session { budget, ..options.session.clone() },
            conditions: options.conditions,
            limits: limits_of(what),
            sizes_bytes: &options.bulk_bytes,
        };
        let progress = Progress::new(what.name());
        let collected = rounds.run(|share| {
            progress.show(share);
            programs.launch(share);
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
                why.map_or(
                    "the machine changed in the midst of every block; try again when it is idle"
                        .into(),
                    |e| e.to_string()
                )
            );
        }
        figures.extend(programs.figures(&run, &collected.limits));
        figures.extend(run.limit_figures(&options.bulk_bytes, &collected));
        figures.retain(|figure| self.class.shows(figure.c2c_class));
        output::tell(self.json.as_ref(), &figures, || text::page(&run, &figures))
    }

    /// The programs to compare with.
    fn programs(&self, what: Collective, options: &Options) -> Programs {
        let (pes, sizes) = (options.session.pes, &options.sizes_bytes);
        let of_openmp = |&library| openmp::rows(library, what, pes, sizes);
        let mut libraries: Vec<_> = options.openmp.iter().map(of_openmp).collect();
        if options.mpi {
            let rows = mpi::rows(what, pes, sizes, &self.mpi);
            libraries.extend(rows.into_iter().map(|row| vec![row]));
        }
        Programs::new(pes, self.budget, libraries)
    }
}
