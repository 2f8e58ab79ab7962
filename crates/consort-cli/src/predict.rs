//! `consort predict`: what the description of this machine foretells, against what is measured.
//!
//! Each call is simulated on the machine that `consort calibrate` has described and measured here,
//! by the same algorithm, as calls in a row. Of what is measured only blocks count in which the
//! cores were as far apart as they were when the machine was described: near, or far.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use clap::value_parser;
use consort::{
    Algorithms, Arrival, Candidate, Collective, Mode as SyncMode, Pes, Query, Rank, Sync,
};
use consort_fabric::{OperatorClass, statistics::median};
use consort_native::limits::TransferClass;
use consort_sim::{
    Simulation,
    machines::{Kind, State},
};
use consort_tuner::{Wisdom, choose_or_estimate};
use serde::Serialize;

use crate::{
    bench::{
        progress::Progress,
        rounds::of_class,
        session::{Conditions, Mode, Session, Timing},
        work::Work,
    },
    bytes, machines,
    output::{self, brief, finish, table, time},
    record,
    sim::program::{self, Program},
    topo,
    tune::wisdom_path,
};

/// How long a block of calls takes.
const BLOCK: Duration = Duration::from_micros(300);
/// Launches that a measurement is spread over.
const LAUNCHES: u32 = 3;
/// Further launches that a machine is given where the cores are elsewhere all the time.
const MORE_LAUNCHES: u32 = 6;
/// Calls of a simulation; the first is not counted.
const CALLS: u64 = 33;

const EXAMPLES: &str = "\
Examples:
  consort calibrate && consort predict           is the description any good?
  consort predict --sync strict --bytes 8,8k     of these calls
  consort predict --machine ./mine.toml          of another description of this machine";

/// Compare what the description of this machine foretells with what is measured
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Predict {
    /// A description of this machine, by `consort calibrate`
    #[arg(long, value_name = "NAME|FILE", default_value = "host")]
    machine: String,
    /// Number of PEs
    #[arg(long, value_name = "N", default_value = "2",
        value_parser = value_parser!(u32).range(2..))]
    pes: u32,
    /// Sizes in bytes of broadcasts and reductions
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = bytes::parse_doubles,
        default_value = "8,64,512,4k,32k,256k,1M")]
    bytes: Vec<u64>,
    /// Synchronization modes: strict, mine, or ENTRY/EXIT as in mine/all
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "mine,strict")]
    sync: Vec<Sync>,
    /// Seconds to measure for, about
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = topo::seconds)]
    budget: Duration,
    /// Write one JSON object, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Predicted {
    machine: String,
    pes: u32,
    /// The one-way transfer of the description, in nanoseconds, and its class.
    transfer_ns: f64,
    class: String,
    /// The median of the errors' sizes, as a share.
    median_error: f64,
    calls: Vec<Call>,
}

/// One kind of call.
#[derive(Debug, Serialize)]
struct Call {
    #[serde(flatten)]
    asked: record::Asked,
    #[serde(skip)]
    query: Query,
    #[serde(serialize_with = "record::shown")]
    candidate: Candidate,
    predicted_ns: f64,
    measured_ns: f64,
    /// How many blocks were measured.
    blocks: usize,
    /// By how much the prediction is too high, as a share of what is measured.
    error: f64,
}

impl Predict {
    /// Simulates, measures and prints.
    ///
    /// # Errors
    /// When there is no description, it is of other cores than these, or measuring fails.
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(sync) = self.sync.iter().find(|sync| sync.exit == SyncMode::None) {
            bail!(
                "--sync {sync}: calls that return early need buffers of their own kind; use \
                strict, mine, or others that end in mine or all"
            );
        }
        let machine = machines::find(&self.machine)?;
        let Kind::Coherent(cores) = &machine.kind else {
            bail!("{}: only machines of coherent caches can be this one", machine.name)
        };
        let usable = Algorithms::here().cores();
        let most = machine.pes().min(usable);
        ensure!(
            self.pes <= most,
            "--pes {}: {} has {} PEs, and {usable} cores are usable here",
            self.pes,
            machine.name,
            machine.pes(),
        );
        let distance = cores.distance(0, 1);
        let transfer_ns =
            cores.store_ns(State::Shared, distance) + cores.load_ns(State::Modified, distance);
        let class = TransferClass::of(transfer_ns);
        let asked = self.asked()?;
        let progress = Progress::new("measuring");
        let timings = self.measure(&asked, class, &progress)?;
        progress.rename("simulating");
        let simulation = Simulation::on(machine.clone(), self.pes);
        let mut calls = Vec::new();
        for (index, ((query, candidate), timing)) in asked.into_iter().zip(&timings).enumerate() {
            progress.show(index as f64 / timings.len() as f64);
            let blocks = of_class(timing, Some(class));
            if blocks.is_empty() {
                continue;
            }
            let mut times: Vec<f64> = blocks.iter().map(|block| block.ns).collect();
            let (blocks, measured_ns) = (times.len(), median(&mut times));
            let predicted_ns = self.simulate(&simulation, &query, &candidate)?;
            calls.push(Call {
                asked: record::Asked::from(&query),
                query,
                candidate,
                predicted_ns,
                measured_ns,
                blocks,
                error: predicted_ns / measured_ns - 1.0,
            });
        }
        drop(progress);
        ensure!(
            !calls.is_empty(),
            "the cores are not {class} now, as they were when {} was described: describe the \
             machine anew with `consort calibrate`, or try again",
            machine.name,
        );
        let mut errors: Vec<f64> = calls.iter().map(|call| call.error.abs()).collect();
        let predicted = Predicted {
            machine: machine.name,
            pes: self.pes,
            transfer_ns,
            class: class.to_string(),
            median_error: median(&mut errors),
            calls,
        };
        match &self.json {
            Some(json) => output::write_json(json, &predicted),
            None => output::print(&predicted.text(timings.len())),
        }
    }

    /// The calls, each with the algorithm that serves it here.
    fn asked(&self) -> Result<Vec<(Query, Candidate)>> {
        let algorithms = Algorithms::here();
        let wisdom =
            Wisdom::load(&wisdom_path(None, Arrival::Together)?, algorithms.identity()).ok();
        let call = |collective, sync: Sync, bytes| Query {
            collective,
            sync,
            pes: self.pes,
            bytes,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        let mut queries = vec![call(Collective::Barrier, Sync::STRICT, 0)];
        for &sync in &self.sync {
            for collective in [Collective::Broadcast, Collective::Reduce, Collective::AllReduce] {
                queries.extend(self.bytes.iter().map(|&bytes| call(collective, sync, bytes)));
            }
        }
        let serving = |query: Query| {
            let choice =
                choose_or_estimate(wisdom.as_ref(), algorithms, &query, algorithms.cores())
                    .with_context(|| format!("no algorithm serves {query:?}"))?;
            Ok((query, choice.entry.choice.clone()))
        };
        queries.into_iter().map(serving).collect()
    }

    /// Measures all calls in turn, in several launches, until each has blocks of the class.
    fn measure(
        &self,
        asked: &[(Query, Candidate)],
        class: TransferClass,
        progress: &Progress,
    ) -> Result<Vec<Timing>> {
        let work: Vec<Work> = asked
            .iter()
            .map(|(query, candidate)| crate::workbench::work(query, candidate))
            .collect();
        let session = Session {
            pes: self.pes,
            waiting: None,
            work,
            mode: Mode::Throughput,
            budget: self.budget / LAUNCHES,
            block: BLOCK,
        };
        let mut timings = vec![Timing::default(); asked.len()];
        for launch in 0..LAUNCHES + MORE_LAUNCHES {
            let lacking =
                timings.iter().any(|timing: &Timing| of_class(timing, Some(class)).is_empty());
            if launch >= LAUNCHES && !lacking {
                break;
            }
            let job = Pes::threads(self.pes).force(Collective::Barrier, program::barrier());
            let measured = session.run_in(job, &Conditions::default())?;
            for (all, new) in timings.iter_mut().zip(measured.timings) {
                all.blocks.extend(new.blocks);
            }
            progress.show(f64::from(launch + 1) / f64::from(LAUNCHES));
        }
        Ok(timings)
    }

    fn simulate(
        &self,
        simulation: &Simulation,
        query: &Query,
        candidate: &Candidate,
    ) -> Result<f64> {
        let program = Program {
            collective: query.collective,
            candidate: candidate.clone(),
            sync: query.sync,
            root: Rank(0),
            bytes: usize::try_from(query.bytes)?,
            symmetric: query.symmetric,
            mode: Mode::Throughput,
            calls: CALLS,
        };
        let played = program.play(simulation, self.pes);
        let called = || format!("{} by {candidate}", record::describe(query));
        played.with_context(called)?.call_ns(Mode::Throughput)
    }
}

impl Predicted {
    fn text(&self, asked_count: usize) -> String {
        let mut table = table(["call", "algorithm", "predicted", "measured", "error"]);
        for call in &self.calls {
            table.add_row([
                record::describe(&call.query),
                brief(&call.candidate),
                time(call.predicted_ns),
                time(call.measured_ns),
                format!("{:+.0} %", call.error * 100.0),
            ]);
        }
        let mut text = format!(
            "{}, {} PEs, calls in a row, cores {}: one-way transfer {}\n\n",
            self.machine,
            self.pes,
            self.class,
            time(self.transfer_ns),
        );
        text += &finish(table, &[2, 3, 4]);
        text += &format!("\nMedian error: {:.0} %\n", self.median_error * 100.0);
        let missing = asked_count - self.calls.len();
        if missing > 0 {
            text += &format!("{missing} calls found the cores elsewhere whenever they came.\n");
        }
        text
    }
}
