//! Processes that measure. `session --start` of this program, or an MPI's `mpirun`, starts them as
//! `session FILE`. The file contains their task, and PE 0 prints the outcome, both as JSON.

use std::{env, fs::File, process::Command, sync::atomic::AtomicBool, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use consort::{
    Job, JobBuilder,
    launch::{Fabric, Sharing},
};
use consort_mpi::MpiProcess;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::peers::{commands, mpi};

/// The task that processes are started for.
#[derive(Deserialize, Serialize)]
pub(super) enum Task<O, S> {
    /// Timing kinds of work.
    Time(O),
    /// Finding the places of PEs.
    Survey(S),
}

/// The reply of a process when it ends.
#[derive(Deserialize, Serialize)]
pub(super) enum Answer<T> {
    /// PE 0: the outcome.
    Outcome(T),
    /// From each process: the number of processes, which is not the requested one.
    Started(u32),
}

/// Returns how many processes an MPI has started, if it is the wrong number for this many PEs.
pub(super) fn other_count((fabric, pes): (Fabric, u32)) -> Option<u32> {
    let (shape, started) = fabric.shape().zip(MpiProcess::here())?;
    Some(started.processes).filter(|&processes| processes as usize != shape.processes(pes as usize))
}

/// Returns the PEs that a process started for this purpose takes part in.
pub(super) fn pes((fabric, pes): (Fabric, u32)) -> JobBuilder {
    let sharing =
        if matches!(fabric, Fabric::Mixed(_)) { Sharing::Machine } else { Sharing::Process };
    let pes = Job::from_env(pes as usize).sharing(sharing);
    match fabric.shape() {
        Some(shape) => pes.on_processes(shape),
        None => pes,
    }
}

/// Starts `pes` PEs that are processes, and returns what PE 0 prints. When `stop` is set, they end
/// without an outcome.
///
/// # Errors
/// If they cannot be started, or fail.
pub(super) fn outcome<T: DeserializeOwned>(
    (fabric, pes): (Fabric, u32),
    task: &Task<impl Serialize, impl Serialize>,
    stop: &AtomicBool,
) -> Result<T> {
    ensure!(
        fabric.shape().is_none() || MpiProcess::here().is_none(),
        "--fabric {fabric}: this command starts mpirun, so it cannot run under mpirun: start it \
         directly"
    );
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("session.json");
    let file = File::create(&path).context("cannot create a temporary file")?;
    serde_json::to_writer(file, task)?;
    let program = env::current_exe().context("cannot find the path of this program")?;
    let mut command = match fabric.shape() {
        Some(shape) => mpi::launcher(shape.processes(pes as usize), stop)?,
        None => {
            let mut command = Command::new(&program);
            command.args(["session", "--start", &pes.to_string()]);
            command
        }
    };
    if fabric.shape().is_some() {
        command.arg(&program).arg("session");
    }
    command.arg(&path);
    let printed = commands::output_of_processes(&mut command, Duration::MAX, stop)?;
    // If one process reports their number, all do.
    let said = printed.lines().next().unwrap_or_default();
    let answer = serde_json::from_str(said).context("the processes printed no result");
    match (answer?, fabric.shape()) {
        (Answer::Outcome(outcome), _) => Ok(outcome),
        (Answer::Started(count), shape) => {
            let each = shape.map_or(1, |shape| shape.pes_each);
            bail!(
                "--fabric {fabric} --pes {pes} needs {} processes of {each} PEs, but mpirun \
                 started {count}: use --pes {}, or let mpirun start enough",
                (pes as usize).div_ceil(each),
                count as usize * each
            )
        }
    }
}
