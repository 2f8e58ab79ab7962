//! One program with one library, in a process that this one starts.
//!
//! Each launch is a process. So the threads of other libraries, which may spin between regions, are
//! gone, and the processor time is that of one library. The process is this program, started again
//! with a hidden option. It prints its samples as JSON.

use std::{
    env,
    path::PathBuf,
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use consort_machine::{affinity::CpuId, usage::processor_time};
use serde::{Deserialize, Serialize};

use super::{
    condition::enter,
    parts::RegionProgram,
    program::{ForkJoinProgram, check},
};
use crate::{
    peers::{
        commands::output,
        fork_join::{ForkJoin, ThreadPlacement, runtime},
    },
    workloads::busy::{ARGUMENTS, BUSY, stay_busy},
};

/// The most samples that a launch prints: every n-th, if there are more.
const MOST_SAMPLES: usize = 2000;
/// The share of the time that goes to warming up.
const WARM_UP: u32 = 5;
/// A launch that exceeds its time by this is considered hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A launch.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ProgramLaunch {
    pub(super) runtime: String,
    pub(super) program: ForkJoinProgram,
    pub(super) threads: usize,
    /// The processor of each thread, if each has one.
    pub(super) cpus: Option<Vec<u32>>,
    /// The measuring time.
    pub(super) time: Duration,
    /// The compiled library, if the way needs one.
    pub(super) compiled_library: Option<PathBuf>,
    /// The control group that the process enters.
    pub(super) group: Option<PathBuf>,
}

/// The results of a launch.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct LaunchOutcome {
    /// The time of an iteration, in nanoseconds.
    pub(super) samples_ns: Vec<f64>,
    /// The mean over all iterations.
    pub(super) mean_ns: f64,
    /// The processor time of all threads, in seconds per second.
    pub(super) busy_cores: Option<f64>,
}

/// Takes part in a measurement: performs the launch that the JSON text describes, and returns the
/// results as JSON; or keeps a core busy until the parent process ends.
///
/// # Errors
/// If the text does not describe a launch, the library cannot be used, or its results are wrong.
pub fn take_part(text: &str) -> Result<String> {
    if text == BUSY {
        stay_busy();
        return Ok(String::new());
    }
    let launch: ProgramLaunch = serde_json::from_str(text).context("this is not a launch")?;
    Ok(serde_json::to_string(&launch.perform()?)?)
}

impl ProgramLaunch {
    /// Performs the launch in another process, which ends early once `stop` is set.
    ///
    /// # Errors
    /// If the process cannot be started, fails or hangs.
    pub(super) fn start(&self, stop: &AtomicBool) -> Result<LaunchOutcome> {
        let program = env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.args(ARGUMENTS).arg(serde_json::to_string(self)?);
        let runtime = runtime(&self.runtime).context("unknown library")?;
        command.envs(runtime.variables.iter().copied());
        let printed = output(&mut command, self.time + PATIENCE, stop)?;
        serde_json::from_str(&printed).context("the process printed no result")
    }

    fn perform(&self) -> Result<LaunchOutcome> {
        self.group.as_deref().map(enter).transpose()?;
        let cpus = self.cpus.as_ref().map(|cpus| cpus.iter().copied().map(CpuId).collect());
        let compiled_library = self.compiled_library.clone();
        let placement = ThreadPlacement { threads: self.threads, cpus, compiled_library };
        let runtime = runtime(&self.runtime).context("unknown library")?;
        let mut threads = runtime.create(&placement)?;
        let mut program = self.program.create(self.threads);
        check(&mut *program, &mut *threads)?;
        self.samples(&mut *program, &mut *threads, self.time / WARM_UP)?;
        self.samples(&mut *program, &mut *threads, self.time)
    }

    /// Times iterations for this long, at least one sample.
    fn samples(
        &self,
        program: &mut dyn RegionProgram,
        threads: &mut dyn ForkJoin,
        time: Duration,
    ) -> Result<LaunchOutcome> {
        let iterations = self.program.iterations_a_sample();
        let mut samples_ns = Vec::new();
        let (processor, begun) = (processor_time(), Instant::now());
        let mut before = (begun, program.idle());
        while samples_ns.is_empty() || begun.elapsed() < time {
            (0..iterations).try_for_each(|_| program.iterate(threads))?;
            let after = (Instant::now(), program.idle());
            let taken = (after.0 - before.0).saturating_sub(after.1 - before.1);
            samples_ns.push(taken.as_secs_f64() * 1e9 / f64::from(iterations));
            before = after;
        }
        let wall = begun.elapsed().as_secs_f64();
        let spent = processor.zip(processor_time());
        let busy_cores = spent.map(|(before, after)| (after - before).as_secs_f64() / wall);
        let mean_ns = samples_ns.iter().sum::<f64>() / samples_ns.len() as f64;
        ensure!(mean_ns > 0.0, "the clock stands still");
        let every = samples_ns.len().div_ceil(MOST_SAMPLES);
        let samples_ns = samples_ns.into_iter().step_by(every).collect();
        Ok(LaunchOutcome { samples_ns, mean_ns, busy_cores })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_times_every_iteration() {
        let launch = ProgramLaunch {
            runtime: "consort".to_owned(),
            program: ForkJoinProgram::Nbody,
            threads: 2,
            cpus: None,
            time: Duration::from_millis(5),
            compiled_library: None,
            group: None,
        };
        let text = take_part(&serde_json::to_string(&launch).unwrap()).unwrap();
        let outcome: LaunchOutcome = serde_json::from_str(&text).unwrap();
        assert!(!outcome.samples_ns.is_empty() && outcome.samples_ns.len() <= MOST_SAMPLES);
        assert!(outcome.samples_ns.iter().all(|&ns| ns > 0.0) && outcome.mean_ns > 0.0);
        assert!(outcome.busy_cores.is_none_or(|cores| cores > 0.0), "{outcome:?}");
        assert!(take_part("{}").unwrap_err().to_string().contains("not a launch"));
    }
}
