//! Processes that `torchrun` or Slurm's `srun` has started: their ranks, and the name of their job.
//!
//! Both launchers describe the job in environment variables. The rendezvous is a name that only the
//! processes of one launch share. It contains the port of `torchrun` with its count of restarts, or
//! the numbers of Slurm's job and step. Only processes on the same machine can meet by a name. So a
//! job of several machines is refused immediately, and not after the time limit.

use std::fs;

use consort_fabric::{Rank, environment::variable};
use consort_native::MeetError;

use super::Rendezvous;
use crate::{
    Result,
    error::{ConfigError, LaunchError},
};

/// Returns the value of a variable that is set.
type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

/// The variables of `torchrun` that describe a job. Kubernetes and others set the same.
const OF_TORCHRUN: [&str; 3] = ["RANK", "WORLD_SIZE", "MASTER_PORT"];

/// The variables that only `srun` sets. In a batch script, which is one process, the step's are
/// missing.
const OF_SLURM: [&str; 5] = [
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
];

impl Rendezvous {
    /// Returns the rank of this process, the number of processes and their rendezvous, if another
    /// launcher has started this process, on one machine.
    ///
    /// | launcher | variables |
    /// | --- | --- |
    /// | `torchrun` | `RANK`, `WORLD_SIZE` and `MASTER_PORT`; `LOCAL_WORLD_SIZE` must equal `WORLD_SIZE`, or else, if it is not set, `MASTER_ADDR` must name this machine |
    /// | Slurm's `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`, `SLURM_JOB_ID` and `SLURM_STEP_ID`; `SLURM_STEP_NUM_NODES` must be 1 |
    ///
    /// If both are set, `torchrun` has started this process. [`Job::from_env`](crate::Job::from_env)
    /// calls this.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) when a variable is not a number;
    /// [`LaunchError::Meeting`] when the processes are on several machines.
    ///
    /// ```
    /// use consort::{Job, Rank, Rendezvous, ops::Sum};
    ///
    /// // One PE if no launcher has started this process.
    /// let alone = (Rank(0), 1, Rendezvous::name(format!("sum-{}", std::process::id())));
    /// let (rank, size, rendezvous) = Rendezvous::environment()?.unwrap_or(alone);
    /// let sums = Job::processes(rank, size, rendezvous).run(|pe| pe.world().all_reduce(1, Sum))?;
    /// assert_eq!(sums[rank], size);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn environment() -> Result<Option<(Rank, usize, Self)>> {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        of(&|name| Some(variable(name)?.to_string_lossy().trim().to_owned()), host.trim())
    }
}

/// Returns the job that the variables describe to a process of this host.
fn of(variables: Variables<'_>, host: &str) -> Result<Option<(Rank, usize, Rendezvous)>> {
    let set = |name: &str| variables(name).unwrap_or_default();
    let are_set = |names: &[&str]| names.iter().all(|name| variables(name).is_some());
    if are_set(&OF_TORCHRUN) {
        let [rank, size, port] = OF_TORCHRUN.map(|name| number(variables, name));
        let (rank, size) = (rank?, size?);
        let is_here = match variables("LOCAL_WORLD_SIZE") {
            Some(_) => number(variables, "LOCAL_WORLD_SIZE")? == size,
            None => is_of_host(&set("MASTER_ADDR"), host),
        };
        let name = format!("torchrun-{}-{}", port?, set("TORCHELASTIC_RESTART_COUNT"));
        let remedy = "if they are all on this one, set LOCAL_WORLD_SIZE to WORLD_SIZE";
        return job(("torchrun", remedy), is_here, [rank, size], name).map(Some);
    }
    if are_set(&OF_SLURM) {
        let [rank, size, nodes, ..] = OF_SLURM.map(|name| number(variables, name));
        let name = format!("slurm-{}.{}", set("SLURM_JOB_ID"), set("SLURM_STEP_ID"));
        let remedy = "start them on one node: `srun -N 1`";
        return job(("srun", remedy), nodes? == 1, [rank?, size?], name).map(Some);
    }
    Ok(None)
}

/// Returns a job of a launcher.
fn job(
    (launcher, remedy): (&'static str, &'static str),
    is_here: bool,
    [rank, size]: [u32; 2],
    name: String,
) -> Result<(Rank, usize, Rendezvous)> {
    if !is_here && size > 1 {
        return Err(LaunchError::Meeting(MeetError::Machines { launcher, remedy }).into());
    }
    Ok((Rank(rank), size as usize, Rendezvous::name(name)))
}

/// Returns whether an address is one of this host, without asking a name server.
fn is_of_host(address: &str, host: &str) -> bool {
    let is_loopback = address.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    is_loopback || address == "localhost" || !host.is_empty() && address == host
}

/// Returns the number in a variable that is set.
fn number(variables: Variables<'_>, name: &'static str) -> Result<u32> {
    let text = variables(name).unwrap_or_default();
    let number = text.parse().ok();
    number.ok_or_else(|| ConfigError::new(name, text, "a number, as the launcher sets it").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(set: &[(&str, &str)]) -> std::result::Result<Option<(u32, usize, String)>, String> {
        let variables = |name: &str| {
            let found = set.iter().rfind(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = of(&variables, "node7").map_err(|error| error.to_string())?;
        Ok(found.map(|(rank, size, rendezvous)| (rank.0, size, format!("{rendezvous:?}"))))
    }

    /// Returns the name in a rendezvous.
    fn is_named(found: &Option<(u32, usize, String)>, name: &str) -> bool {
        found.as_ref().is_some_and(|(.., shown)| shown.contains(&format!("\"{name}\"")))
    }

    const TORCH: [(&str, &str); 4] = [
        ("RANK", "2"),
        ("WORLD_SIZE", "3"),
        ("MASTER_PORT", "29500"),
        ("MASTER_ADDR", "localhost"),
    ];

    const SLURM: [(&str, &str); 5] = [
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_STEP_NUM_NODES", "1"),
        ("SLURM_JOB_ID", "77"),
        ("SLURM_STEP_ID", "0"),
    ];

    fn with<'a>(
        base: &[(&'a str, &'a str)],
        more: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        [base, more].concat()
    }

    #[test]
    fn process_of_torchrun_knows_its_job() {
        let job = found(&TORCH).expect("one machine");
        assert!(matches!(job, Some((2, 3, _))) && is_named(&job, "torchrun-29500-"), "{job:?}");
        let again = found(&with(&TORCH, &[("TORCHELASTIC_RESTART_COUNT", "1")]));
        assert!(is_named(&again.expect("one machine"), "torchrun-29500-1"));
        for here in ["127.0.0.1", "::1", "node7"] {
            assert!(found(&with(&TORCH, &[("MASTER_ADDR", here)])).is_ok(), "{here}");
        }
        let far = [("MASTER_ADDR", "node8")];
        let error = found(&with(&TORCH, &far)).expect_err("several machines");
        assert!(error.contains("`torchrun`") && error.contains("LOCAL_WORLD_SIZE"), "{error}");
        let local = |count| found(&with(&with(&TORCH, &far), &[("LOCAL_WORLD_SIZE", count)]));
        assert!(local("3").is_ok() && local("2").is_err() && local("all").is_err());
        assert!(found(&with(&TORCH, &[("WORLD_SIZE", "1"), far[0]])).is_ok(), "one process");
        let error = found(&with(&TORCH, &[("RANK", "first")])).expect_err("no number");
        assert!(error.contains("RANK") && error.contains("first"), "{error}");
    }

    #[test]
    fn process_of_srun_knows_its_job() {
        let job = found(&SLURM).expect("one node");
        assert!(matches!(job, Some((1, 4, _))) && is_named(&job, "slurm-77.0"), "{job:?}");
        let error = found(&with(&SLURM, &[("SLURM_STEP_NUM_NODES", "2")])).expect_err("two nodes");
        assert!(error.contains("`srun`") && error.contains("`mpirun`"), "{error}");
        let both = found(&with(&SLURM, &TORCH)).expect("one machine");
        assert!(matches!(both, Some((2, 3, _))), "torchrun within srun: {both:?}");
    }

    /// A batch script, and a program that only looks like one of a launcher, are alone.
    #[test]
    fn variables_that_are_missing_describe_no_job() {
        for set in [&TORCH[..3], &SLURM[..]] {
            for missing in 0..set.len() {
                let mut rest = set.to_vec();
                rest.remove(missing);
                assert_eq!(found(&rest), Ok(None), "without {:?}", set[missing]);
            }
        }
    }
}
