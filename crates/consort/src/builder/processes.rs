//! The processes that an MPI has started: which of them share memory, and their initial state.

use std::{io, sync::Arc};

use consort_fabric::{Nodes, Rank};
use consort_mpi::{Mpi, MpiError, MpiProcess};
use consort_native::{Config, FileLocation, Job, SharedFile};

use super::{
    JobBuilder,
    ground::Ground,
    settings::{MASK, Setting, mask, processors_of},
};
use crate::{
    Error, Result,
    error::LaunchError,
    fabric::{Fabric, MachineShape, ProcessShape, Sharing, engine_count},
    tune::Algorithms,
    warn::warn,
};

/// The number of words that each process sends before its mask of usable processors.
const BEFORE_MASK: usize = 5;

/// The processes, from the view of one of them.
pub(super) struct Processes {
    mpi: Mpi,
    pes: u32,
    shape: ProcessShape,
    /// The placement of the PEs on nodes that share memory.
    nodes: Nodes,
    ground: Ground,
    /// The files with the static variables of near PEs, including this process's.
    statics: Vec<(Rank, Arc<SharedFile>)>,
    /// The PEs on this machine, and the processors of it that their processes may use.
    pub(super) here: u32,
    pub(super) processors: usize,
}

fn failed(error: MpiError) -> Error {
    Error::Launch(LaunchError::Mpi(error.to_string()))
}

/// Numbers the machines of the processes in order of first appearance; `None` if some process has
/// no place.
fn machines(places: &[u64]) -> Option<Vec<u32>> {
    let mut known = Vec::new();
    let number = |place: &u64| {
        let at = known.iter().position(|one| one == place).unwrap_or_else(|| {
            known.push(*place);
            known.len() - 1
        });
        u32::try_from(at).ok().filter(|_| *place != 0)
    };
    places.iter().map(number).collect()
}

/// Returns the number of processors and the mask in the words of a process.
fn processors_and_mask(gathered: &[u64]) -> (u32, [u64; MASK]) {
    let mask = gathered.get(BEFORE_MASK..).and_then(|mask| mask.try_into().ok());
    (low(gathered[1]), mask.unwrap_or_default())
}

/// Returns a number that was received in a word.
fn low(word: u64) -> u32 {
    u32::try_from(word).unwrap_or(0)
}

/// Returns the order of ranks, as the environment names it.
fn placement(shape: ProcessShape) -> &'static str {
    if shape.in_turn { "in-turn" } else { "blocks" }
}

/// Returns whether any two processes are on one machine.
fn are_shared(machines: &[u32]) -> bool {
    machines.iter().zip(0..).any(|(&machine, process)| machine != process)
}

impl Processes {
    /// Begins a job of all processes. Each process calls this.
    pub(super) fn begin(
        started: &MpiProcess,
        shape: ProcessShape,
        sharing: Sharing,
        statics: Option<Arc<SharedFile>>,
    ) -> Result<Self> {
        let begun = Self::find_nodes(started, shape, sharing, statics)?;
        // The first of the processes that share memory fills it.
        let leads = !matches!(begun.ground, Ground::Finds(_));
        begun.mpi.lead(leads).map_err(failed)?;
        Ok(begun)
    }

    /// Returns whether this is the first process.
    pub(super) fn is_first(&self) -> bool {
        self.mpi.rank() == 0
    }

    /// Determines which processes share memory.
    fn find_nodes(
        started: &MpiProcess,
        shape: ProcessShape,
        sharing: Sharing,
        statics: Option<Arc<SharedFile>>,
    ) -> Result<Self> {
        let mpi = Mpi::begin(started).map_err(failed)?;
        if let Some(warning) = mpi.warning().filter(|_| mpi.rank() == 0) {
            warn(warning);
        }
        let (rank, processes) = (mpi.rank() as usize, started.processes as usize);
        let each = engine_count(shape.pes_each.max(1));
        let pes = started.processes.saturating_mul(each);
        // This process's place, its processors, and a file that processes of the same machine find.
        let place = SharedFile::host_key().filter(|_| sharing == Sharing::Machine);
        // The last reason why this process and others do not share memory.
        let mut why = None;
        let file = place.and_then(|_| SharedFile::new().map_err(|error| why = Some(error)).ok());
        let at = file.as_ref().map(SharedFile::at);
        let processors = Algorithms::here().topology().processors();
        let mut own = vec![place.unwrap_or(0), processors as u64];
        own.extend(at.map_or([0, 0], |at| [at.process.into(), at.descriptor.into()]));
        own.push(statics.as_ref().map_or(0, |file| file.at().descriptor.into()));
        own.extend(mask());
        let all = mpi.gather(&own).map_err(failed)?;
        let gathered: Vec<&[u64]> = all.chunks(own.len()).collect();
        let places: Vec<u64> = gathered.iter().map(|words| words[0]).collect();
        let by_process = shape.nodes(pes);
        let pe_of = |process: usize| {
            let process = u32::try_from(process).unwrap_or(u32::MAX);
            Rank(by_process.members(process, pes).first)
        };
        let own_pe = pe_of(rank);
        let apart = Self {
            mpi,
            pes,
            shape,
            nodes: if processes == 1 { Nodes::One } else { shape.nodes(pes) },
            ground: Ground::Own,
            statics: statics.iter().map(|file| (own_pe, Arc::clone(file))).collect(),
            here: started.here.unwrap_or(started.processes).saturating_mul(each),
            processors,
        };
        let Some(machines) = machines(&places).filter(|machines| are_shared(machines)) else {
            return Ok(apart);
        };
        let on_own = |&other: &usize| machines[other] == machines[rank];
        let neighbours: Vec<usize> = (0..processes).filter(on_own).collect();
        let first = neighbours[0];
        let at =
            FileLocation { process: low(gathered[first][2]), descriptor: low(gathered[first][3]) };
        let ground = match (first == rank, file) {
            (true, file) => file.map(Ground::Fills),
            (false, _) => {
                SharedFile::find(at).map_err(|error| why = Some(error)).ok().map(Ground::Finds)
            }
        };
        let find = |&neighbour: &usize| {
            let [process, descriptor] = [2, 4].map(|word| low(gathered[neighbour][word]));
            let file = SharedFile::find(FileLocation { process, descriptor })?;
            Ok((pe_of(neighbour), Arc::new(file)))
        };
        let files = neighbours.iter().filter(|_| statics.is_some()).map(find);
        let files = files.collect::<io::Result<Vec<_>>>();
        let files = files.map_err(|error| why = Some(error)).ok();
        let on_machines: Vec<u32> =
            (0..pes).map(|pe| machines[by_process.node(pe) as usize]).collect();
        let nodes = Nodes::of(&on_machines);
        // `nodes` may not describe this placement of PEs on machines.
        let is_form = on_machines.iter().zip(0..).all(|(&machine, pe)| nodes.node(pe) == machine);
        let is_found = ground.is_some() && files.is_some();
        let found = apart.mpi.gather(&[u64::from(is_found)]).map_err(failed)?;
        let (Some(ground), Some(statics), true) = (ground, files, is_form && !found.contains(&0))
        else {
            let reason = match why {
                _ if !is_form => "ranks are placed on the machines neither in equal blocks nor in \
                                  turn: start them by `consort run --hosts`"
                    .to_owned(),
                Some(why) => format!("they do not find each other's memory: {why}"),
                None => "they do not find each other's memory".to_owned(),
            };
            // All know that some process found no files; the first such process knows why.
            let speaker = found.iter().position(|&is_found| is_found == 0).unwrap_or(0);
            if rank == speaker {
                warn(&format!("processes of one machine share no memory: {reason}"));
            }
            return Ok(apart);
        };
        Ok(Self {
            nodes,
            ground,
            statics,
            here: u32::try_from(neighbours.len()).unwrap_or(u32::MAX).saturating_mul(each),
            processors: processors_of(
                neighbours.iter().map(|&process| processors_and_mask(gathered[process])),
            ),
            ..apart
        })
    }

    /// Returns whether some PEs are far from others.
    pub(super) fn has_far(&self) -> bool {
        self.nodes.count(self.pes) > 1
    }

    /// Returns the fabric of the PEs: on one machine they are like processes of a local launch.
    fn fabric(&self) -> Fabric {
        match (self.has_far(), matches!(self.ground, Ground::Own)) {
            (false, true) => Fabric::Threads,
            (false, false) => Fabric::Processes,
            (true, true) => Fabric::Mpi(self.shape),
            (true, false) => {
                let pes_each = self.shape.pes_each.max(1);
                let on_machine = self.nodes.members(0, self.pes).count as usize;
                let processes = on_machine.div_ceil(pes_each);
                let in_turn = matches!(self.nodes, Nodes::InTurn(_));
                let process = ProcessShape { pes_each, in_turn };
                Fabric::Mixed(MachineShape { processes: Some(processes), process })
            }
        }
    }

    /// Returns the algorithms of the PEs.
    pub(super) fn algorithms(&self) -> &'static Algorithms {
        Algorithms::of(self.fabric()).on(self.nodes, self.pes)
    }

    /// Ends the job unless all processes have the same configuration.
    pub(super) fn ensure_alike(&mut self, pes: &JobBuilder, sharing: Sharing) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let placement = placement(self.shape).to_owned();
        let mut settings = vec![
            Setting::new("version of Consort", &version, version.to_owned()),
            Setting::of_executable(pes.statics.is_some()),
            Setting::of_number("PEs of a process", self.shape.pes_each as u64),
            Setting::new("placement", &self.shape.in_turn, placement),
            Setting::new("sharing of memory", &sharing, format!("{sharing:?}")),
        ];
        settings.extend(pes.settings(Algorithms::of(self.fabric())));
        let values: Vec<(&'static str, u64)> =
            settings.iter().map(|one| (one.name, one.value)).collect();
        self.mpi.ensure_same(&values, |at| settings[at].shown.clone()).map_err(failed)
    }

    /// Creates the job. All processes create it, or none does.
    pub(super) fn job(self, config: Config) -> Result<Arc<Job>> {
        let Self { mpi, pes, shape, nodes, ground, statics, .. } = self;
        let heap_bytes = config.heap_bytes;
        let config = Config { nodes, ..config };
        let own = shape.nodes(pes).members(mpi.rank(), pes);
        let own = Some(own.first).filter(|_| own.count == 1).map(Rank);
        let memory = ground.memory(config, own, || mpi.gather(&[1]).map(drop).map_err(failed));
        let memory = memory.and_then(|mut memory| {
            for (pe, file) in statics {
                let placed = memory.place_statics(pe, &file);
                placed.map_err(|why| {
                    Error::Launch(LaunchError::Mpi(format!("static variables of PE {pe}: {why}")))
                })?;
            }
            Ok(memory)
        });
        let are_there = mpi.gather(&[memory.is_ok().into()]).map_err(failed)?;
        if let Some(process) = are_there.iter().position(|&is_there| is_there == 0) {
            mpi.end();
            let why = format!(
                "process {process} could not get memory for a job of {pes} PEs with symmetric \
                 heaps of {heap_bytes} bytes: its own error names the limit"
            );
            return memory.and(Err(LaunchError::Mpi(why).into()));
        }
        let memory = memory?;
        Ok(Job::linked(memory, mpi.into_transport(), [shape.nodes(pes), nodes])?)
    }
}
