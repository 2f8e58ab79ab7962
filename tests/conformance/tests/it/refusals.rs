//! The refusals of algorithms: each algorithm's reasons are in `refusals.txt`, and any other reason
//! fails the test.

use std::{collections::BTreeSet, env, fs, path::Path};

use consort_collectives::{Setting, check};
use consort_conformance::{Case, Space};
use consort_fabric::Nodes;
use consort_sim::{Simulation, machines::Machine};

static SIZES: [usize; 3] = [8, 57, 20_001];
/// Teams, and their placement on nodes.
const TEAMS: [(u32, Nodes); 4] =
    [(1, Nodes::One), (2, Nodes::One), (5, Nodes::One), (8, Nodes::Blocks(2))];
/// Set to write the file again.
const WRITE: &str = "TEST_WRITE_REFUSALS";

/// Returns the reason without its numbers, which belong to the case.
fn reason(case: &Case, pes: u32, simulation: &Simulation) -> Option<String> {
    let capabilities = simulation.capabilities().expect("it takes any number of PEs");
    let candidate = case.kind.candidate.as_ref()?;
    let error = check(&Setting::of(case.call(pes), capabilities), candidate).err()?;
    let mut text = String::new();
    for letter in error.to_string().chars() {
        let letter = if letter.is_ascii_digit() { 'N' } else { letter };
        if letter != 'N' || !text.ends_with('N') {
            text.push(letter);
        }
    }
    Some(format!("{}: {text}", case.kind.collective))
}

#[test]
fn refusals_match_the_known_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("refusals.txt");
    let mut found = BTreeSet::new();
    let able = TEAMS.map(|(pes, nodes)| (pes, Simulation::explored(pes).nodes(nodes)));
    // Its cores expose nothing, have little memory for messages, and send synchronously.
    let scc = Machine::find("scc").expect("it is shipped");
    for (pes, simulation) in able.into_iter().chain([(8, Simulation::on(scc, 8))]) {
        let space = Space::of(pes, &SIZES);
        let cases = space.in_few_modes();
        found.extend(cases.filter_map(|case| reason(&case, pes, &simulation)));
    }
    let text: String = found.iter().map(|line| format!("{line}\n")).collect();
    if env::var_os(WRITE).is_some() {
        fs::write(&path, text).expect("the file can be written");
        return;
    }
    let written = fs::read_to_string(&path).expect("the file is there");
    let known: BTreeSet<&str> = written.lines().collect();
    let new: Vec<&String> = found.iter().filter(|line| !known.contains(line.as_str())).collect();
    assert!(new.is_empty(), "these are refused for a reason that is not known: {new:#?}");
    assert_eq!(text, written, "run this test with {WRITE}=1: some are refused no more");
}
