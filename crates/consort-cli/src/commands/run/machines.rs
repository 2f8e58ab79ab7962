//! Starts a program on several machines, with the `mpirun` in `PATH`.

use consort_console::{
    args::{self, PES_PER_PROCESS},
    output, refuse, require,
};
use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use consort::launch::ProcessShape;
use consort_fabric::environment::variable;
use consort_mpi::{HostPlacement, Launcher, find_program};

use super::hosts::Hosts;

/// The prefixes of this project's variables, and of OpenSHMEM's.
const OURS: [&[u8]; 3] = [b"CONSORT_", b"SHMEM_", b"SMA_"];
/// The variable with the order of the ranks.
const PLACEMENT: &str = "CONSORT_PLACEMENT";
/// The value for ranks dealt in turn, as an option and a variable.
const IN_TURN: &str = "in-turn";

/// Options for several machines, and other launchers' options.
#[derive(Args)]
pub(super) struct Machines {
    /// Use these machines, by the mpirun in PATH
    ///
    /// The processes are spread evenly. NAME:SLOTS limits the number on a machine.
    #[arg(short = 'H', long, alias = "host", value_name = "NAME,...", conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// Use the machines in this file, one per line
    ///
    /// A line is NAME, NAME:SLOTS or NAME slots=SLOTS.
    #[arg(long, alias = "machinefile", value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// With --hosts: PEs per process, as threads
    ///
    /// The default is $CONSORT_PES_PER_PROCESS, or 1.
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes_per_process: Option<u32>,
    /// With --hosts: order of ranks, blocks or in-turn
    ///
    /// Successive ranks are in one process and on one machine (blocks), or are dealt in turn. The
    /// default is $CONSORT_PLACEMENT, or blocks.
    #[arg(long, value_name = "ORDER", value_parser = ["blocks", IN_TURN])]
    #[arg(hide_possible_values = true)]
    placement: Option<String>,
    /// With --hosts: only print the command of the MPI
    #[arg(long)]
    dry_run: bool,
    #[arg(long, hide = true)]
    oversubscribe: bool,
    #[arg(long, hide = true)]
    allow_run_as_root: bool,
}

/// The job to start.
pub(super) struct Job<'j> {
    pub(super) pes: u32,
    pub(super) tags: bool,
    /// An option that an MPI does not have, if one was given.
    pub(super) refused: Option<&'static str>,
    /// Variables; those without a value get that of this process.
    pub(super) variables: Vec<(OsString, Option<OsString>)>,
    pub(super) program: &'j [OsString],
}

impl Machines {
    /// Returns the machines, unless all processes are children of this command.
    ///
    /// # Errors
    /// When no machine is named, or options require machines and there are none.
    pub(super) fn hosts(&self) -> Result<Option<Hosts>> {
        let hosts = match (&self.hosts, &self.hostfile) {
            (Some(list), _) => Some(Hosts::of_list(list).context("--hosts")?),
            (None, Some(path)) => {
                let named = || format!("--hostfile {}", path.display());
                Some(Hosts::of_file(path).with_context(named)?)
            }
            (None, None) => None,
        };
        let options = [
            (self.pes_per_process.is_some(), "--pes-per-process"),
            (self.placement.is_some(), "--placement"),
            (self.dry_run, "--dry-run"),
        ];
        let is_of_mpi = self.pes_per_process.is_some() || self.placement.is_some();
        match hosts {
            None => {
                let given = options.iter().find(|(is_given, _)| *is_given);
                given.map_or(Ok(None), |(_, it)| refuse!("{it}: only with --hosts or --hostfile"))
            }
            Some(hosts) if is_of_mpi || !hosts.are_here() => Ok(Some(hosts)),
            Some(_) => {
                require!(
                    !self.dry_run,
                    "--dry-run: all hosts are this machine, where processes start without mpirun"
                );
                Ok(None)
            }
        }
    }

    /// Starts the job in place of this command, or prints the command.
    ///
    /// # Errors
    /// When there is no `mpirun`, options do not fit, or it does not start.
    pub(super) fn start(&self, hosts: &Hosts, job: Job<'_>) -> Result<ExitCode> {
        if let Some(option) = job.refused {
            refuse!("{option}: not with --hosts, where mpirun starts the processes");
        }
        let shape = self.shape()?;
        args::check_processes(shape, job.pes)?;
        let processes = shape.processes(job.pes as usize);
        let most = hosts.most(processes).context("--hosts")?;
        let in_turn = self.in_turn();
        let used = if in_turn { processes } else { processes.div_ceil(most) };
        let used = hosts.names.len().min(used);
        if let unused @ [first, ..] = &hosts.names[used..] {
            tracing::warn!(
                "of {} hosts {} {} no process ({first}{}): the others take {most} at most",
                hosts.names.len(),
                unused.len(),
                if unused.len() == 1 { "has" } else { "have" },
                if unused.len() == 1 { "" } else { ", ..." },
            );
        }
        let launcher = launcher()?;
        let mut command = Command::new("mpirun");
        command.args(launcher.arguments(&HostPlacement {
            hosts: &hosts.names[..used],
            processes,
            most,
            in_turn,
            tags: job.tags,
            as_root: self.allow_run_as_root,
            variables: &self.variables(job.variables),
        }));
        command.args(job.program);
        if self.dry_run {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<String> = words.map(output::quoted).collect();
            output::print_as_it_is(&(words.join(" ") + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(command.exec()).context("mpirun cannot be started")
    }

    /// Returns the placement of PEs on processes.
    fn shape(&self) -> Result<ProcessShape> {
        let of_environment =
            || variable(PES_PER_PROCESS).map(|text| args::pes(text.to_string_lossy().trim()));
        let pes_each = self.pes_per_process.map(Ok).or_else(of_environment).unwrap_or(Ok(1));
        let pes_each = pes_each.map_err(|error| anyhow!("{PES_PER_PROCESS}: {error}"))?;
        Ok(ProcessShape { pes_each: pes_each as usize, in_turn: self.in_turn() })
    }

    fn in_turn(&self) -> bool {
        let placement = self.placement.clone().map(OsString::from);
        placement.or_else(|| variable(PLACEMENT)).is_some_and(|order| order == IN_TURN)
    }

    /// Returns the variables for the processes: all that they may read, and those of options.
    fn variables(
        &self,
        given: Vec<(OsString, Option<OsString>)>,
    ) -> BTreeMap<OsString, Option<OsString>> {
        let names = env::vars_os().map(|(name, _)| name);
        let is_ours = |name: &OsString| {
            OURS.iter().any(|beginning| name.as_encoded_bytes().starts_with(beginning))
        };
        let ours = names.filter(is_ours);
        let mut all: BTreeMap<_, _> = ours.map(|name| (name, None)).collect();
        all.extend(given);
        let each = self.pes_per_process.map(|each| (PES_PER_PROCESS, each.to_string()));
        let order = self.placement.clone().map(|order| (PLACEMENT, order));
        let said = [each, order].into_iter().flatten();
        all.extend(said.map(|(name, value)| (name.into(), Some(value.into()))));
        all
    }
}

/// Returns the launcher of the MPI in `PATH`.
fn launcher() -> Result<Launcher> {
    let found = find_program(Path::new("mpirun"));
    let mpirun = found.context("--hosts: no mpirun in PATH: load or install an MPI")?;
    let asked = Command::new(&mpirun).arg(OsStr::new("--version")).output();
    let asked = asked.with_context(|| format!("{} cannot be started", mpirun.display()))?;
    let said = [asked.stdout, asked.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(
        asked.status.success(),
        "{} --version failed: {}",
        mpirun.display(),
        said.lines().next().unwrap_or_default()
    );
    Ok(Launcher::of_version(&said))
}
