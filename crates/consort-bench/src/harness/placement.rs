//! The machines and processes of PEs, and the time of a message between two PEs.
//!
//! A PE puts 8 bytes with a signal that the other PE awaits, and the other PE does the same in
//! return. Half of this round trip is the time of a message. Pairs are measured in turn, so that
//! all of them see the same changes of the machines; the other PEs wait in a collective call. There
//! are three kinds of pairs: PEs of one process, of one machine, and of two machines. If a kind has
//! many pairs, only some pairs are measured, with evenly spread ranks.

use std::{
    collections::BTreeSet,
    fs, process,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::{
    Error, JobBuilder, Rank, Symmetric, Team,
    launch::{Fabric, MachineShape},
    symmetric::{Signal, Until},
};
use consort_fabric::statistics::median;
use consort_machine::topology::Topology;
use consort_native::SharedFile;
use serde::{Deserialize, Serialize};

use super::started::{self, Task};
use crate::query_json::{read, shown};

/// The number of pairs of a kind that are measured, unless all are.
const PAIRS: usize = 8;
/// Round trips of a reading, and warm-up round trips in which the two PEs begin.
const TRIPS: u32 = 50;
const FIRST_TRIPS: u32 = 5;
const HEAP_BYTES: usize = 1 << 20;

/// A survey of the places of PEs that are processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PlacementSurvey {
    /// The fabric of the PEs.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub fabric: Fabric,
    /// The number of PEs.
    pub pes: u32,
    /// Whether all pairs are measured, whatever their number.
    pub all: bool,
    /// The time to measure for; if it is 0, nothing is measured.
    pub budget: Duration,
}

/// The place of a PE.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PePlace {
    /// Its rank.
    pub pe: u32,
    /// The number of its process, from 0, in rank order.
    pub process: u32,
    /// The number of its machine, likewise.
    pub machine: u32,
    /// The name of that machine.
    pub host: String,
    /// The number of cores that the processes of its machine may use together.
    pub cores: usize,
}

/// The relation between the places of two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeRelation {
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
    /// The PE that sends first.
    pub a: u32,
    /// The other PE.
    pub b: u32,
    /// The relation between their places.
    pub between: PeRelation,
    /// Half a round trip, in nanoseconds: the median of all readings.
    pub one_way_ns: f64,
    /// The smallest and the largest reading.
    pub range_ns: (f64, f64),
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SurveyResult {
    /// The fabric of the PEs.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub fabric: Fabric,
    /// The place of each PE, in rank order.
    pub places: Vec<PePlace>,
    /// The distances between some pairs.
    pub distances: Vec<Distance>,
}

impl PeRelation {
    /// All kinds, the nearest first.
    pub const EVERY: [Self; 3] = [Self::Threads, Self::Processes, Self::Machines];

    fn of(one: &PePlace, other: &PePlace) -> Self {
        if one.machine != other.machine {
            Self::Machines
        } else if one.process != other.process {
            Self::Processes
        } else {
            Self::Threads
        }
    }
}

/// Returns the actual fabric of `pes` PEs. The launcher of the MPI decides how many processes of
/// [`Fabric::Mixed`] a machine has. On one machine, the PEs are processes, or the threads of one
/// process.
///
/// # Errors
/// If they cannot be started, or a machine has other processes than the fabric says.
pub fn found(fabric: Fabric, pes: u32, stop: &AtomicBool) -> Result<Fabric> {
    let Fabric::Mixed(MachineShape { processes, .. }) = fabric else { return Ok(fabric) };
    let survey = PlacementSurvey { fabric, pes, all: false, budget: Duration::ZERO };
    let found = survey.run(stop)?.fabric;
    ensure!(
        processes.is_none() || found == fabric,
        "--fabric {fabric}: the MPI starts {pes} PEs as {found}: name that fabric, or start them \
         on other machines"
    );
    Ok(found)
}

impl PlacementSurvey {
    /// Starts the PEs, and measures until the budget is spent, each pair at least once. When `stop`
    /// is set, the PEs end without an outcome.
    ///
    /// # Errors
    /// If they cannot be started, or fail.
    pub fn run(&self, stop: &AtomicBool) -> Result<SurveyResult> {
        started::outcome((self.fabric, self.pes), &Task::<(), _>::Survey(self), stop)
    }

    /// Takes part as one process; the process of PE 0 gets the outcome.
    pub(super) fn take_part(&self) -> Result<Option<SurveyResult>> {
        let pes = started::pes((self.fabric, self.pes));
        Ok(self.find_out(pes.heap_bytes(HEAP_BYTES).without_wisdom())?)
    }

    fn find_out(&self, pes: JobBuilder) -> Result<Option<SurveyResult>, Error> {
        let own = OwnPlace::here();
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
            Ok(SurveyResult { fabric: pe.fabric(), distances: distances.collect(), places })
        })?;
        let first = found.into_ranked().next();
        Ok(first.filter(|&(rank, _)| rank == Rank(0)).map(|(_, found)| found))
    }

    /// Returns the readings of each pair, on all PEs.
    fn readings(
        &self,
        world: &Team,
        pairs: &[(u32, u32, PeRelation)],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let mut trips = RoundTrips::new(world)?;
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
struct RoundTrips {
    me: Rank,
    target: Symmetric<u64>,
    /// The number of messages that have arrived from each PE.
    came: Symmetric<u64>,
    awaited: Vec<u64>,
}

impl RoundTrips {
    fn new(world: &Team) -> Result<Self, Error> {
        let pes = world.size();
        let (target, came) = (world.symmetric(1)?, world.symmetric(pes)?);
        Ok(Self { me: world.rank(), target, came, awaited: vec![0; pes] })
    }

    /// Returns the time of a message between two PEs, which both call this; the first one gets it.
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

/// The place of this process.
struct OwnPlace {
    /// A number that processes on one machine share, if it is known.
    place: u64,
    host: String,
    /// The processors that it may use, and the number of cores that they form.
    cpus: Vec<u32>,
    cores: usize,
}

impl OwnPlace {
    /// Describes this process. Must be called before a PE is bound to its core, because it may use
    /// only that core then.
    fn here() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname");
        let topology = Topology::discover();
        Self {
            place: SharedFile::host_key().unwrap_or(0),
            host: host.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
            cpus: topology.allowed().iter().map(|cpu| cpu.0).collect(),
            cores: topology.usable_cores(),
        }
    }

    fn places(&self, world: &Team) -> Result<Vec<PePlace>, Error> {
        let gathered = world.all_gather((self.place, process::id(), self.cores))?;
        let (hosts, names) = world.values(self.host.as_bytes()).uneven().all_gather()?;
        let (cpus, masks) = world.values(&self.cpus).uneven().all_gather()?;
        let (mut machines, mut processes) = (Vec::new(), Vec::new());
        let place = |(pe, (place, id, cores))| {
            let host = String::from_utf8_lossy(&hosts[names.range(Rank(pe))]).into_owned();
            let machine = number(&mut machines, (place, host.clone()));
            let process = number(&mut processes, (machine, id));
            PePlace { pe, process, machine, host, cores }
        };
        let mut places: Vec<PePlace> = (0..).zip(gathered).map(place).collect();
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

/// Returns the index of a thing among the known ones, and adds it if it is new.
fn number<T: PartialEq>(known: &mut Vec<T>, thing: T) -> u32 {
    let at = known.iter().position(|one| *one == thing).unwrap_or_else(|| {
        known.push(thing);
        known.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns the pairs to measure, by kind.
fn pairs(places: &[PePlace], all: bool) -> Vec<(u32, u32, PeRelation)> {
    let mut chosen = Vec::new();
    for between in PeRelation::EVERY {
        let of_one = |(index, one): (usize, &PePlace)| {
            let others = places[index + 1..].iter();
            let kind = others.filter(|other| PeRelation::of(one, other) == between);
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
    use consort::Job;

    use super::*;

    /// Returns four PEs on each machine, two in each process.
    fn eight() -> Vec<PePlace> {
        let place = |pe| PePlace {
            pe,
            process: pe / 2,
            machine: pe / 4,
            host: format!("h{}", pe / 4),
            cores: 2,
        };
        (0..8).map(place).collect()
    }

    #[test]
    fn pairs_cover_every_kind() {
        let count = |all: bool| {
            let pairs = pairs(&eight(), all);
            PeRelation::EVERY.map(|kind| pairs.iter().filter(|(.., one)| *one == kind).count())
        };
        assert_eq!(count(true), [4, 8, 16]);
        assert_eq!(count(false), [4, 8, 8]);
        let spread: Vec<_> = pairs(&eight(), false).into_iter().skip(12).collect();
        assert_eq!(spread[0], (0, 4, PeRelation::Machines));
        assert_eq!(spread[7], (3, 6, PeRelation::Machines));
        assert_eq!(pairs(&eight()[..1], true), []);
    }

    #[test]
    fn threads_share_one_process() {
        let survey =
            |budget| PlacementSurvey { fabric: Fabric::Threads, pes: 3, all: false, budget };
        let find = |budget| survey(budget).find_out(Job::threads(3)).unwrap().unwrap();
        let found = find(Duration::from_nanos(1));
        let at = |place: &PePlace| (place.process, place.machine);
        assert_eq!(found.fabric, Fabric::Threads);
        assert_eq!(found.places.iter().map(at).collect::<Vec<_>>(), [(0, 0); 3]);
        let pairs: Vec<_> = found.distances.iter().map(|one| (one.a, one.b)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
        for Distance { between, one_way_ns, range_ns, .. } in found.distances {
            assert_eq!(between, PeRelation::Threads);
            assert!(0.0 < range_ns.0 && range_ns.0 <= one_way_ns && one_way_ns <= range_ns.1);
        }
        assert_eq!(find(Duration::ZERO).distances, []);
    }
}
