//! `consort bench point-to-point`: operations of one PE on the memory of another.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use consort::{Waiting, launch::Fabric, tune::Arrival};
use consort_bench::harness::{Communication, Conditions, Mode, Pattern, Session, Work};
use consort_console::{args, refuse, require};

use super::{
    communication::Plan,
    peers::{MPI, NO_PEER, Peers},
    presenter::OutputOptions,
};

const EXAMPLES: &str = "\
Examples:
  consort bench point-to-point put-bandwidth --fabric processes --bytes 64k,1M";

/// The number of PEs: one that acts, and one whose memory is accessed.
const PES: u32 = 2;

/// Time puts between two PEs, next to messages of MPI
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
// The help fits a screen without it.
#[command(mut_arg("until_decided", |option| option.hide(true)))]
pub(super) struct PointToPointBench {
    /// The pattern
    #[arg(value_name = "PATTERN", value_parser = args::one_of(Pattern::EVERY, Pattern::name))]
    pattern: Pattern,
    /// threads (default), processes, mpi or mixed
    #[arg(long, value_name = "FABRIC", default_value = "threads", hide_default_value = true)]
    fabric: Fabric,
    /// Sizes of a message, such as 8,8k,1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block)]
    bytes: Vec<usize>,
    /// spin, spin-yield or spin-yield-park (default)
    #[arg(long, value_name = "POLICY")]
    waiting: Option<Waiting>,
    /// mpi (default) or none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_possible_values = true,
        value_parser = PossibleValuesParser::new([MPI, NO_PEER]))]
    peers: Vec<String>,
    /// An MPI instead of the mpirun in PATH
    #[arg(long, value_name = "MPIRUN")]
    mpi: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

impl PointToPointBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let peers = self.checked()?;
        self.output.run(PES, |presenter| {
            let fabric = presenter.measurement.found(self.fabric, PES)?;
            self.plan(fabric, peers.clone(), presenter.budget).measure(presenter)
        })
    }

    /// Returns the libraries to compare with.
    fn checked(&self) -> Result<Peers> {
        let name = self.pattern.name();
        if let Some(shape) = self.fabric.shape() {
            args::check_environment(self.fabric)?;
            require!(
                shape.pes_each == 1,
                "--fabric {}: {name} is between 2 processes, of one PE each",
                self.fabric
            );
        }
        let [_, most] = self.pattern.bytes();
        if let Some(bytes) = self.bytes.iter().find(|&&bytes| bytes > most) {
            refuse!("--bytes {bytes}: a message of {name} has at most {most} bytes");
        }
        Peers::choose(&self.peers, &self.mpi, None)
    }

    fn plan(&self, fabric: Fabric, peers: Peers, budget: Duration) -> Plan {
        let Self { pattern, waiting, .. } = *self;
        let [usual, _] = pattern.bytes();
        let sizes = if self.bytes.is_empty() { &[usual] } else { &self.bytes[..] };
        let work = sizes.iter().map(|&bytes| Work::PointToPoint(pattern, bytes)).collect();
        let mode = Mode::Throughput;
        Plan {
            what: Communication::PointToPoint(pattern),
            session: Session { fabric, pes: PES, waiting, work, mode, budget },
            conditions: Conditions { arrival: Arrival::Together, buffers: 1, rewrite: false },
            symmetric: true,
            peers,
        }
    }
}
