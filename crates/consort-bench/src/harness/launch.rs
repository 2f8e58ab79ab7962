//! Launches the PEs of a session: threads of this process, or processes.
//!
//! Processes are this program, started again by its own `run`, or by an MPI's `mpirun`, as
//! `session FILE`. The file has the session, and PE 0 prints the outcome, both as JSON.

use std::{
    env,
    fs::File,
    io::BufReader,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::Context as _;
use consort::{Candidate, Collective, Error, Fabric, Pes, Rank, Sharing};
use consort_native::topology::Topology;
use serde::{Deserialize, Serialize};

use super::{
    member::Member,
    session::{Conditions, Measured, Session, Timing},
    shared::Shared,
    work::Work,
};
use crate::{
    asked::optional,
    environment::Switches,
    peers::{
        commands, mpi,
        threads::{Peer, peers},
    },
};

/// How calls choose their algorithms where the work names none, as entry and exit barriers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Choices {
    /// Whether by wisdom, if there is any, or by the model alone.
    pub wisdom: bool,
    /// The algorithm of barriers.
    #[serde(with = "optional")]
    pub barrier: Option<Candidate>,
}

impl Choices {
    /// As programs choose them.
    pub const USUAL: Self = Self { wisdom: true, barrier: None };

    /// Whatever the wisdom is; barriers by `barrier`, if it is given.
    pub fn without_wisdom(barrier: Option<Candidate>) -> Self {
        Self { wisdom: false, barrier }
    }
}

/// Why a session has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The job cannot be launched, or failed.
    #[error(transparent)]
    Job(#[from] Error),
    /// The processes cannot be launched, or failed.
    #[error("PEs that are processes: {0}")]
    Processes(String),
}

/// What the processes of a session read.
#[derive(Deserialize, Serialize)]
struct Order {
    session: Session,
    choices: Choices,
    conditions: Conditions,
}

impl Session {
    /// Measures until the budget is spent, but at least one block of every work, or until `stop` is
    /// set: then threads end with the present block, and processes at once, without an outcome.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub fn run(
        &self,
        choices: &Choices,
        conditions: &Conditions,
        stop: &AtomicBool,
    ) -> Result<Measured, SessionError> {
        match self.fabric {
            Fabric::Threads => {
                let pes = Pes::threads(self.pes);
                Ok(self.run_in(pes, choices, conditions, stop)?.1)
            }
            Fabric::Processes | Fabric::Mpi(_) => {
                let order = Order {
                    session: self.clone(),
                    choices: choices.clone(),
                    conditions: *conditions,
                };
                let measured = order.launch(stop);
                // Relaxed: the flag publishes no other data.
                if measured.is_err() && stop.load(Relaxed) {
                    return Ok(self.nothing());
                }
                measured.map_err(|error| SessionError::Processes(format!("{error:#}")))
            }
        }
    }

    /// Measures in a job of these PEs, as many as the session has. The outcome is that of the first
    /// PE of this process, and counts if that is PE 0.
    fn run_in(
        &self,
        pes: Pes,
        choices: &Choices,
        conditions: &Conditions,
        stop: &AtomicBool,
    ) -> Result<(Rank, Measured), Error> {
        let mut pes = pes.pinned().heap_bytes(self.heap_bytes(conditions));
        if !choices.wisdom {
            pes = pes.without_wisdom();
        }
        if let Some(barrier) = &choices.barrier {
            pes = pes.force(Collective::Barrier, barrier.clone());
        }
        if let Some(waiting) = self.waiting {
            pes = pes.waiting(waiting);
        }
        let libraries = self.libraries();
        // Before a PE is bound to its core, which is the only one that it may use then. PEs that an
        // MPI starts share no memory, in which a transfer between cores could be timed.
        let is_here = !matches!(self.fabric, Fabric::Mpi(_));
        let fits = is_here && Topology::discover().placement(self.pes as usize).is_some();
        let results = pes.run(|pe| {
            let shared = Shared::new(pe, self.mode, fits)?;
            Member::new((self, conditions), &shared, &libraries, stop, pe).run(pe)
        })?;
        results.into_iter().next().ok_or(Error::NoPes)
    }

    /// The thread libraries, of which processes have none.
    fn libraries(&self) -> Vec<Box<dyn Peer>> {
        match self.fabric {
            // SAFETY: each PE passes its own rank, which is below `pes`. All PEs make the calls
            // that PE 0 decides, in the same order and on buffers of the same lengths.
            #[expect(unsafe_code, reason = "peers trust their callers to match")]
            Fabric::Threads => unsafe { peers(self.pes) },
            Fabric::Processes | Fabric::Mpi(_) => Vec::new(),
        }
    }

    /// The outcome of a session that was stopped before it had one.
    fn nothing(&self) -> Measured {
        Measured {
            timings: vec![Timing::default(); self.work.len()],
            waiting: self.waiting.unwrap_or_default(),
            switches: Switches::default(),
        }
    }

    /// Enough symmetric memory for the buffers of all works.
    fn heap_bytes(&self, conditions: &Conditions) -> usize {
        let buffers = |work: &Work| work.heap_bytes(self.pes, conditions.buffers);
        let shared = Shared::heap_bytes(self.mode);
        self.work.iter().map(buffers).sum::<usize>() + shared + (1 << 20)
    }
}

impl Order {
    /// Starts the processes, and returns what PE 0 prints.
    fn launch(&self, stop: &AtomicBool) -> anyhow::Result<Measured> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let path = folder.path().join("session.json");
        let file = File::create(&path).context("no temporary file")?;
        serde_json::to_writer(file, self)?;
        let program = env::current_exe().context("this program cannot be found")?;
        let mut command = match self.session.fabric {
            Fabric::Mpi(shape) => mpi::launcher(shape.processes(self.session.pes), stop)?,
            _ => {
                let mut command = Command::new(&program);
                command.args(["run", "-n", &self.session.pes.to_string()]);
                if Topology::discover().placement(self.session.pes as usize).is_some() {
                    command.args(["--bind", "core"]);
                }
                command
            }
        };
        command.arg(&program).arg("session").arg(&path);
        let printed = commands::output_of_processes(&mut command, Duration::MAX, stop)?;
        serde_json::from_str(&printed).context("the processes do not say what they measured")
    }
}

/// Takes part in the session in the file at `path`, as a PE that is a process. PE 0 returns the
/// outcome as JSON.
///
/// # Errors
/// When the file has no session, or the job fails.
pub fn take_part(path: &Path) -> anyhow::Result<Option<String>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let order: Order = serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} has no session", path.display()))?;
    let Order { session, choices, conditions } = order;
    let mut pes = Pes::from_env(session.pes);
    if let Fabric::Mpi(shape) = session.fabric {
        pes = pes.on_processes(shape).sharing(Sharing::Process);
    }
    let stop = AtomicBool::new(false);
    let (rank, measured) = session.run_in(pes, &choices, &conditions, &stop)?;
    Ok(if rank == Rank(0) { Some(serde_json::to_string(&measured)?) } else { None })
}
