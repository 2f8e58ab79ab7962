//! F7: the same calls on PEs that are threads, processes, or a mixture of both, on the machines on
//! which an MPI starts them.
//!
//! This is not from a paper: in the papers, PEs are all threads, or all processes. Each call uses
//! the algorithm that Consort chooses for such PEs. Calls are in a row. Processes of an MPI share
//! no memory, even on one machine. In a mixture, the processes of one machine share memory. There
//! is no mixture on a single machine.

use std::time::Duration;

use anyhow::{Result, ensure};
use consort::{
    launch::{Fabric, MachineShape, ProcessShape},
    sync_modes::SyncModes,
    tune::{Collective, Query},
};

use super::{
    experiment::{Experiment, Outcome},
    quantity::Quantity,
};
use consort_bench::{
    harness::{
        ServedBy, Work,
        placement::{PlacementSurvey, found},
    },
    page::Page,
    query_json::sums,
    units::{counted, in_a_line, size, time},
};
use consort_console::usage::Usage;

/// The name of the machine in figures. No paper has such PEs.
const MACHINE: &str = "none";
/// The number of PEs in a process that has several.
const PES_EACH: u32 = 2;
/// The kinds of PEs, from near to far.
const FABRICS: [(&str, Fabric); 4] = [
    ("threads", Fabric::Threads),
    ("processes of a machine", Fabric::Processes),
    (
        "threads of an MPI's processes",
        Fabric::Mpi(ProcessShape { pes_each: PES_EACH as usize, in_turn: false }),
    ),
    ("an MPI's processes", Fabric::Mpi(ProcessShape::SINGLE)),
];
/// The processes of mixtures. The launcher of the MPI decides the order of processes on machines.
const MIXED: [ProcessShape; 3] = [
    ProcessShape::SINGLE,
    ProcessShape { pes_each: PES_EACH as usize, in_turn: false },
    ProcessShape { pes_each: PES_EACH as usize, in_turn: true },
];
/// The calls, and their sizes in bytes.
const CALLS: [(Collective, usize); 4] = [
    (Collective::Barrier, 0),
    (Collective::Broadcast, 8),
    (Collective::AllReduce, 8),
    (Collective::AllReduce, 8 << 10),
];

/// Runs the experiment and judges the claim.
///
/// # Errors
/// When PEs do not fill processes.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    if !experiment.whole {
        let why = "an MPI takes seconds to start processes: run `consort-lab reproduce F7`";
        return Ok(Outcome::unmeasured(why));
    }
    let pes = experiment.pes.unwrap_or(2 * PES_EACH);
    ensure!(pes.is_multiple_of(PES_EACH), Usage(format!("--pes: each process has {PES_EACH} PEs")));
    let queries = CALLS.map(|(collective, bytes)| query(collective, pes, bytes));
    let work = queries.map(|query| Work::Call(query, ServedBy::Consort(None)));
    let known = FABRICS.map(|(name, fabric)| (name.to_owned(), fabric)).into_iter();
    let fabrics: Vec<(String, Fabric)> = known.chain(mixtures(pes, experiment)).collect();
    let budget = experiment.budget / u32::try_from(fabrics.len())?;
    let (mut rows, mut quantities, mut absent) = (Vec::new(), Vec::new(), None);
    let mut measured = Vec::new();
    for (name, fabric) in fabrics {
        let on_fabric = Experiment { fabric, ..*experiment };
        let medians = match on_fabric.medians(pes, &work, budget) {
            Ok(medians) => medians,
            Err(error) => {
                absent.get_or_insert(format!("{name}: {}", in_a_line(&error)));
                continue;
            }
        };
        let mut row = vec![name.clone()];
        for (query, ns) in queries.iter().zip(&medians) {
            row.push(ns.map_or("-".to_owned(), time));
            let what = format!("{}, {name}", call(query));
            let figure = Quantity::new(MACHINE, what, "us");
            quantities.extend(ns.map(|ns| figure.with_pes(pes).native(ns / 1e3)));
        }
        if medians.iter().all(Option::is_some) {
            measured.push(name);
        }
        rows.push(row);
    }
    let mut page = Page::default();
    page.paragraph(format!("{pes} PEs, calls in a row, {}", machines(pes, experiment)));
    let header = std::iter::once("PEs are".to_owned()).chain(queries.iter().map(call));
    page.table(header, rows, 1..=CALLS.len());
    page.lines("\n");
    page.paragraph(
        "Mixed PEs of one machine share memory; mixed:2x1 has 2 processes of 1 PE on each \
         machine.",
    );
    let mut verdict = format!("{pes} PEs: the same calls ran on {}", measured.join(", "));
    if let Some(why) = absent {
        verdict += &format!("; not on {why}");
    }
    Ok(Outcome { verdict, page, quantities })
}

/// Returns the mixtures of `pes` PEs, with their names. There is none on one machine, or if each
/// machine has one process.
fn mixtures(pes: u32, experiment: &Experiment<'_>) -> Vec<(String, Fabric)> {
    let fabrics = MIXED.map(|process| Fabric::Mixed(MachineShape { processes: None, process }));
    let found = fabrics.into_iter().filter_map(|one| found(one, pes, experiment.stop).ok());
    let mixed = found.filter(|one| matches!(one, Fabric::Mixed(_)));
    mixed.map(|one| (one.to_string(), one)).collect()
}

/// Returns the machines of the MPI.
fn machines(pes: u32, experiment: &Experiment<'_>) -> String {
    let fabric = Fabric::Mpi(ProcessShape::SINGLE);
    let survey = PlacementSurvey { fabric, pes, all: false, budget: Duration::ZERO };
    let found = match survey.run(experiment.stop) {
        Ok(found) => found,
        Err(error) => return format!("without an MPI: {}", in_a_line(&error)),
    };
    let machines = found.places.iter().map(|place| place.machine).max().map_or(0, |most| most + 1);
    let others = "; add others with a host file of mpirun";
    let others = if machines == 1 { others } else { "" };
    format!("the MPI's on {}{others}", counted(machines, "machine"))
}

fn query(collective: Collective, pes: u32, bytes: usize) -> Query {
    let is_barrier = collective == Collective::Barrier;
    let sync = if is_barrier { SyncModes::STRICT } else { SyncModes::MINE };
    sums(collective, sync, pes, bytes, false)
}

fn call(query: &Query) -> String {
    match query.bytes {
        0 => query.collective.to_string(),
        bytes => format!("{} of {}", query.collective, size(bytes)),
    }
}
