//! Each algorithm's operations, checked against its revision: wisdom is used as long as revisions
//! are equal, so an algorithm whose operations change must raise its revision.
//!
//! A line of `revisions.txt` has a collective, an algorithm, its revision, and a hash of the
//! operations of all PEs in some calls, without their times.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use consort_collectives::{Algorithm, Vendor, describe, of_parts, revisions};
use consort_conformance::{Case, Program, Space};
use consort_fabric::{Candidate, Collective, Nodes, Rank, SyncModes};
use consort_sim::{Simulation, Trace};

use crate::simulated::{listed, simulate};

static SIZES: [usize; 2] = [8, 5000];
/// Teams, and their placement on nodes.
const TEAMS: [(u32, Nodes); 3] = [(2, Nodes::One), (5, Nodes::One), (8, Nodes::Blocks(2))];
/// The number of calls of a program.
const CALLS: usize = 24;
/// Set to write the file again.
const WRITE: &str = "TEST_WRITE_REVISIONS";

/// Returns whether it has no parts, or the usual ones: other parts have separate revisions.
fn is_of_usual_parts(collective: Collective, candidate: &Candidate) -> bool {
    let usual = || {
        let described = describe(collective, &candidate.algorithm).expect("it is registered");
        of_parts(&described, [0; 2]).swap_remove(0)
    };
    candidate.parts.is_empty() || *candidate == usual()
}

/// Returns a team's cases by collective and algorithm, without other algorithms' barriers around.
fn cases(pes: u32, simulation: &Simulation) -> BTreeMap<String, Vec<Case>> {
    let capabilities = simulation.capabilities().expect("it takes any number of PEs");
    let mut cases: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in Space::of(pes, &SIZES).in_few_modes() {
        let is_barrier = case.kind.collective == Collective::Barrier;
        let is_plain = case.sync != SyncModes::STRICT && case.root == Rank(pes / 2);
        let is_usual = |one: &Candidate| is_of_usual_parts(case.kind.collective, one);
        let is_usual = case.kind.candidate.as_ref().is_none_or(is_usual);
        let is_one = is_usual && !case.kind.is_ordered && (is_plain || is_barrier);
        if is_one && case.is_served(pes, capabilities) {
            let name = format!("{} {}", case.kind.collective, case.kind.algorithm());
            cases.entry(name).or_default().push(case);
        }
    }
    cases
}

/// Hashes by FNV-1a: equal on every machine and in every version.
fn hashed(mut hash: u64, text: &str) -> u64 {
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// Returns each PE's operations in order, without those between calls, outside any algorithm.
fn operations(trace: &Trace, pes: u32) -> String {
    let is_of_algorithm = |what: &str| !["credit", "credits"].contains(&what);
    let mut text = String::new();
    for pe in 0..pes {
        let of_pe = trace.steps().iter().filter(|step| step.pe == pe);
        for step in of_pe.filter(|step| is_of_algorithm(step.what)) {
            let (what, peer, bytes) = (step.what, step.peer, step.bytes);
            write!(text, "{pe} {what} {peer:?} {bytes};").expect("a text takes all");
        }
    }
    text
}

/// Returns the hash of each algorithm with cases that can run.
fn hashes() -> BTreeMap<String, u64> {
    let mut hashes = BTreeMap::new();
    for (pes, nodes) in TEAMS {
        let simulation = Simulation::explored(pes).nodes(nodes).traced();
        for (name, cases) in cases(pes, &simulation) {
            let hash = hashes.entry(name).or_insert(0xcbf2_9ce4_8422_2325);
            for cases in cases.chunks(CALLS) {
                let program = Program::new(pes, 0, cases);
                let outcome = simulate(&simulation, &program)
                    .unwrap_or_else(|error| panic!("{error}, in{}", listed(&program)));
                *hash = hashed(*hash, &operations(&outcome.trace, pes));
            }
        }
    }
    hashes
}

#[test]
fn messages_change_only_with_the_revision() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("revisions.txt");
    let hashes = hashes();
    let (mut text, mut changed) = (String::new(), Vec::new());
    let written = fs::read_to_string(&path).unwrap_or_default();
    let known: BTreeSet<&str> = written.lines().collect();
    let own = revisions().filter(|(_, name, _)| *name != Vendor::NAME);
    for (collective, algorithm, revision) in own {
        let name = format!("{collective} {algorithm}");
        let hash = hashes.get(&name).unwrap_or_else(|| panic!("{name} is never played"));
        let line = format!("{name} {revision} {hash:016x}");
        let start = format!("{name} {revision} ");
        if !known.contains(&*line) && written.lines().any(|line| line.starts_with(&start)) {
            changed.push(name);
        }
        text += &format!("{line}\n");
    }
    assert!(
        changed.is_empty(),
        "these send something else than before: raise their `REVISION`, so that wisdom about what \
         they were is not used: {changed:?}"
    );
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, text).expect("the file can be written");
    } else {
        assert_eq!(written, text, "run this test with {WRITE}=1 and commit {}", path.display());
    }
}
