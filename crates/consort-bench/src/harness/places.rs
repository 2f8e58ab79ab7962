//! Where the PEs of processes are, and how long a message takes between two of them.
//!
//! The message is a put of 8 bytes with a signal that the other PE awaits, and another one back;
//! half of that round trip counts. Pairs take turns, so that all of them see the same changes of
//! the machines, while the other PEs wait in a collective call. Pairs are of three kinds: PEs of
//! one process, of one machine, and of two machines. If there are many of a kind, some are measured
//! whose ranks are spread evenly.

use std::{
    collections::BTreeSet,
    fs, process,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::{Error, Fabric, MachineShape, Pes, Rank, Signal, Symmetric, Team, Until};
use consort_fabric::statistics::median;
use consort_machine::topology::Topology;
use consort_native::SharedFile;
use serde::{Deserialize, Serialize};

use super::started::{self, Task};
use crate::asked::{read, shown};

/// The pairs of a kind that are measured, unless all are.
const PAIRS: usize = 8;
/// Round trips of a reading, and those before it, in which the two PEs begin.
const TRIPS: u32 = 50;
const FIRST_TRIPS: u32 = 5;
const HEAP_BYTES: usize = 1 << 20;

/// PEs that are processes, whose places are to be found out.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Survey {
    /// What starts them.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub fabric: Fabric,
    /// Their number.
    pub pes: u32,
    /// Whether all pairs are measured, however many there are.
    pub all: bool,
    /// The time to measure for; nothing is measured if it is 0.
    pub budget: Duration,
}

/// Where a PE is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Place {
    /// Its rank.
    pub pe: u32,
    /// The number of its process, from 0, in the order of ranks.
    pub process: u32,
    /// The number of its machine, likewise.
    pub machine: u32,
    /// The name of that machine.
    pub host: String,
    /// The cores that the processes of its machine may use together.
    pub cores: usize,
}

/// What lies between two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// They are threads of one process.
    Threads,
    /// They are in two processes of one machine.
    Processes,
    /// They are on two machines.
    Machines,
}

/// The time of a message between two PEs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Distance {
    /// The one that sends first.
    pub a: u32,
    /// The other one.
    pub b: u32,
    /// What lies between them.
    pub between: Between,
    /// Half a round trip, in nanoseconds: the median of all readings.
    pub one_way_ns: f64,
    /// The least and the most of them.
    pub range_ns: (f64, f64),
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Surveyed {
    /// What the PEs are.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub fabric: Fabric,
    /// Where each PE is, in the order of ranks.
    pub places: Vec<Place>,
    /// How far some are from others.
    pub distances: Vec<Distance>,
}

impl Between {
    /// All kinds, from the nearest.
    pub const EVERY: [Self; 3] = [Self::Threads, Self::Processes, Self::Machines];

    fn of(one: &Place, other: &Place) -> Self {
        if one.machine != other.machine {
            Self::Machines
        } else if one.process != other.process {
            Self::Processes
        } else {
            Self::Threads
        }
    }
}

/// What so many PEs of a fabric are where they are started: how many processes of
/// [`Fabric::Mixed`] a machine has is the decision of the MPI's launcher. On one machine they are
/// processes, or the threads of one.
///
/// # Errors
/// When they cannot be started, or a machine has other processes than the fabric says.
pub fn found(fabric: Fabric, pes: u32, stop: &AtomicBool) -> Result<Fabric> {
    let Fabric::Mixed(MachineShape { processes, .. }) = fabric else { return Ok(fabric) };
    let survey = Survey { fabric, pes, all: false, budget: Duration::ZERO };
    let found = survey.run(stop)?.fabric;
    ensure!(
        processes.is_none() || found == fabric,
        "--fabric {fabric}: {pes} PEs are {found} where the MPI starts them; name that fabric, or \
         have it start them on other machines"
    );
    Ok(found)
}

impl Survey {
    /// Starts the PEs, and measures until the budget is spent, but each pair at least once. Once
    /// `stop` is set they end, without an outcome.
    ///
    /// # Errors
    /// When they cannot be started, or fail.
    pub fn run(&self, stop: &AtomicBool) -> Result<Surveyed> {
        started::outcome((self.fabric, self.pes), &Task::<(), _>::Survey(self), stop)
    }

    /// One process's part; that of PE 0 has the outcome.
    pub(super) fn take_part(&self) -> Result<Option<Surveyed>> {
        let pes = started::pes((self.fabric, self.pes));
        Ok(self.find_out(pes.heap_bytes(HEAP_BYTES).without_wisdom())?)
    }

    fn find_out(&self, pes: Pes) -> Result<Option<Surveyed>, Error> {
        let own = Own::here();
        let found = pes.run(|pe| {
            let world = pe.world();
            let places = own.places(world)?;
            let pairs = if self.budget.is_zero() { Vec::new() } else { pairs(&places, self.all) };
            let readings = self.readings(world, &pairs)?;
            let distances = pairs.iter().zip(readings).map(|(&(a, b, between), mut all)| {
                let one_way_ns = median(&mut all);
                let range_ns = (all[0], all[all.len() - 1]);
                Distance { a, b, between, one_way_ns, range_ns }
            });
            Ok(Surveyed { fabric: pe.fabric(), distances: distances.collect(), places })
        })?;
        let first = found.into_iter().next();
        Ok(first.and_then(|(rank, found)| (rank == Rank(0)).then_some(found)))
    }

    /// The readings of each pair, on all PEs.
    fn readings(
        &self,
        world: Team<'_>,
        pairs: &[(u32, u32, Between)],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let mut trips = Trips::new(world)?;
        let mut readings = vec![Vec::new(); pairs.len()];
        let begun = Instant::now();
        while world
            .broadcast(!pairs.is_empty() && goes_on(&readings, begun, self.budget), Rank(0))?
        {
            for (&(a, b, _), all) in pairs.iter().zip(&mut readings) {
                world.barrier()?;
                let ns = trips.reading([Rank(a), Rank(b)])?;
                all.push(world.broadcast(ns, Rank(a))?);
            }
        }
        Ok(readings)
    }
}

fn goes_on(readings: &[Vec<f64>], begun: Instant, budget: Duration) -> bool {
    readings.iter().any(Vec::is_empty) || begun.elapsed() < budget
}

/// Round trips between any two PEs.
struct Trips<'p> {
    me: Rank,
    target: Symmetric<'p, u64>,
    /// The messages that have come from each PE.
    came: Symmetric<'p, u64>,
    awaited: Vec<u64>,
}

impl<'p> Trips<'p> {
    fn new(world: Team<'p>) -> Result<Self, Error> {
        let pes = world.size() as usize;
        let (target, came) = (world.symmetric(1)?, world.symmetric(pes)?);
        Ok(Self { me: world.rank(), target, came, awaited: vec![0; pes] })
    }

    /// The time of a message between two PEs, which both call this, on the first of them.
    fn reading(&mut self, [first, second]: [Rank; 2]) -> Result<f64, Error> {
        let peer = if self.me == first { second } else { first };
        if ![first, second].contains(&self.me) {
            return Ok(0.0);
        }
        let mut begun = Instant::now();
        for trip in 0..FIRST_TRIPS + TRIPS {
            if trip == FIRST_TRIPS {
                begun = Instant::now();
            }
            if self.me == first {
                self.send(peer)?;
                self.receive(peer)?;
            } else {
                self.receive(peer)?;
                self.send(peer)?;
            }
        }
        Ok(begun.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS))
    }

    fn send(&self, to: Rank) -> Result<(), Error> {
        self.target.put_signal(to, 0, &[1], &self.came, self.me.index(), Signal::Add(1))
    }

    fn receive(&mut self, from: Rank) -> Result<(), Error> {
        self.awaited[from.index()] += 1;
        let awaited = self.awaited[from.index()];
        self.came.wait_until(from.index(), Until::AtLeast(awaited)).map(drop)
    }
}

/// Where a process is.
struct Own {
    /// A number that those of one machine have in common, if it can be told.
    place: u64,
    host: String,
    /// The processors that it may use, and how many cores they are.
    cpus: Vec<u32>,
    cores: usize,
}

impl Own {
    /// Before a PE is bound to its core, which is the only one that it may use then.
    fn here() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname");
        let topology = Topology::discover();
        Self {
            place: SharedFile::place().unwrap_or(0),
            host: host.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
            cpus: topology.allowed().iter().map(|cpu| cpu.0).collect(),
            cores: topology.usable_cores(),
        }
    }

    /// Where all PEs are.
    fn places(&self, world: Team<'_>) -> Result<Vec<Place>, Error> {
        let told = world.all_gather((self.place, process::id(), self.cores))?;
        let (hosts, names) = world.all_gather_vector(self.host.as_bytes())?;
        let (cpus, masks) = world.all_gather_vector(&self.cpus)?;
        let (mut machines, mut processes) = (Vec::new(), Vec::new());
        let place = |(pe, (place, id, cores))| {
            let host = String::from_utf8_lossy(&hosts[names.range(Rank(pe))]).into_owned();
            let machine = number(&mut machines, (place, host.clone()));
            let process = number(&mut processes, (machine, id));
            Place { pe, process, machine, host, cores }
        };
        let mut places: Vec<Place> = (0..).zip(told).map(place).collect();
        let cores: Vec<usize> = places
            .iter()
            .map(|one| {
                let here = places.iter().filter(|other| other.machine == one.machine);
                let all = here.flat_map(|other| &cpus[masks.range(Rank(other.pe))]);
                let own = cpus[masks.range(Rank(one.pe))].len().max(1);
                one.cores * all.collect::<BTreeSet<_>>().len() / own
            })
            .collect();
        places.iter_mut().zip(cores).for_each(|(place, cores)| place.cores = cores);
        Ok(places)
    }
}

/// The number of a thing among those that are known, to which it is added.
fn number<T: PartialEq>(known: &mut Vec<T>, thing: T) -> u32 {
    let at = known.iter().position(|one| *one == thing).unwrap_or_else(|| {
        known.push(thing);
        known.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The pairs to measure, by kinds.
fn pairs(places: &[Place], all: bool) -> Vec<(u32, u32, Between)> {
    let mut chosen = Vec::new();
    for between in Between::EVERY {
        let of_one = |(index, one): (usize, &Place)| {
            let others = places[index + 1..].iter();
            let kind = others.filter(|other| Between::of(one, other) == between);
            kind.map(|other| (one.pe, other.pe, between)).collect::<Vec<_>>()
        };
        let kind: Vec<_> = places.iter().enumerate().flat_map(of_one).collect();
        let most = if all { kind.len() } else { kind.len().min(PAIRS) };
        chosen.extend((0..most).map(|index| kind[index * kind.len() / most]));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four PEs on each machine, two in each process.
    fn eight() -> Vec<Place> {
        let place = |pe| Place {
            pe,
            process: pe / 2,
            machine: pe / 4,
            host: format!("h{}", pe / 4),
            cores: 2,
        };
        (0..8).map(place).collect()
    }

    #[test]
    fn pairs_are_of_all_kinds() {
        let count = |all: bool| {
            let pairs = pairs(&eight(), all);
            Between::EVERY.map(|kind| pairs.iter().filter(|(.., one)| *one == kind).count())
        };
        assert_eq!(count(true), [4, 8, 16]);
        assert_eq!(count(false), [4, 8, 8]);
        let spread: Vec<_> = pairs(&eight(), false).into_iter().skip(12).collect();
        assert_eq!(spread[0], (0, 4, Between::Machines));
        assert_eq!(spread[7], (3, 6, Between::Machines));
        assert_eq!(pairs(&eight()[..1], true), []);
    }

    #[test]
    fn threads_are_in_one_place() {
        let survey = |budget| Survey { fabric: Fabric::Threads, pes: 3, all: false, budget };
        let find = |budget| survey(budget).find_out(Pes::threads(3)).unwrap().unwrap();
        let found = find(Duration::from_nanos(1));
        let at = |place: &Place| (place.process, place.machine);
        assert_eq!(found.fabric, Fabric::Threads);
        assert_eq!(found.places.iter().map(at).collect::<Vec<_>>(), [(0, 0); 3]);
        let pairs: Vec<_> = found.distances.iter().map(|one| (one.a, one.b)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
        for Distance { between, one_way_ns, range_ns, .. } in found.distances {
            assert_eq!(between, Between::Threads);
            assert!(0.0 < range_ns.0 && range_ns.0 <= one_way_ns && one_way_ns <= range_ns.1);
        }
        assert_eq!(find(Duration::ZERO).distances, []);
    }
}
