//! Tests which descriptions are read, and which are refused, with the line of the error. Every text
//! is either read or refused.

use std::ops::Range;

use proptest::{
    prelude::{any, prop_assert, proptest},
    sample::{Index, select},
};

use consort_fabric::{Levels, Nodes};

use super::{
    AtomicOp, Cluster, Coherent, DescriptionError, Kind, Machine, MessageBuffers, Network, State,
};

/// Returns a shipped description with one text replaced by another.
fn edited(name: &str, old: &str, new: &str) -> String {
    let (_, text) = Machine::description(name).unwrap();
    assert_eq!(text.matches(old).count(), 1, "`{old}` in {name}");
    text.replace(old, new)
}

/// Returns the line and the message of the error for a text.
#[track_caller]
fn flaw(text: &str) -> (usize, String) {
    match Machine::parse("edited.toml", text) {
        Err(DescriptionError::Flawed { file, line, message }) => {
            assert_eq!(file, "edited.toml");
            (line, message)
        }
        other => panic!("expected a flaw, not {other:?}"),
    }
}

/// Asserts that an edit is refused at the line of `at`, with a message that contains `says`.
#[track_caller]
fn refused_at(at: &str, name: &str, old: &str, new: &str, says: &str) {
    let text = edited(name, old, new);
    let (line, message) = flaw(&text);
    let expected = 1 + text[..text.find(at).unwrap()].matches('\n').count();
    assert_eq!(line, expected, "{message}");
    assert!(message.contains(says), "`{says}` in `{message}`");
}

/// Asserts that an edit is refused at its own line.
#[track_caller]
fn refused(name: &str, old: &str, new: &str, says: &str) {
    refused_at(new, name, old, new, says);
}

fn message_buffers(name: &str) -> MessageBuffers {
    match Machine::find(name).unwrap().kind {
        Kind::MessageBuffers(machine) => machine,
        kind => panic!("{name} is {}", kind.name()),
    }
}

fn coherent(name: &str) -> Coherent {
    match Machine::find(name).unwrap().kind {
        Kind::Coherent(machine) => machine,
        kind => panic!("{name} is {}", kind.name()),
    }
}

fn cluster(text: &str) -> Cluster {
    match Machine::parse("cluster.toml", text).unwrap().kind {
        Kind::Cluster(machine) => machine,
        kind => panic!("it is {}", kind.name()),
    }
}

#[test]
fn every_shipped_description_is_read() {
    let pes = |name| Machine::find(name).unwrap_or_else(|error| panic!("{error}")).pes();
    let found: Vec<(&str, u32)> = Machine::shipped().map(|name| (name, pes(name))).collect();
    let expected = [
        ("barcelona-x8", 32),
        ("bluegene-p", 163_840),
        ("cluster", 16384),
        ("clovertown-x2", 8),
        ("cray-xt4", 39168),
        ("epyc-9654-x2", 192),
        ("graviton4", 96),
        ("niagara2-x4", 256),
        ("opteron-6176-x4", 48),
        ("ranger", 62976),
        ("scc", 48),
        ("tile-gx36", 36),
        ("xeon-e7-8867l-x8", 160),
        ("xeon-x5680-infiniband", 180),
    ];
    assert_eq!(found, expected);
}

#[test]
fn machine_is_found_by_name_or_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, edited("scc", "rows = 4", "rows = 3")).unwrap();
    let machine = Machine::find(path.to_str().unwrap()).unwrap();
    assert_eq!((machine.name.as_str(), machine.pes()), ("mine", 36));
    let Err(error) = Machine::find("scd") else { panic!("`scd` is not a machine") };
    assert!(
        error.to_string().contains("`scd`: expected barcelona-x8, bluegene-p, cluster,"),
        "{error}"
    );
    let Err(error) = Machine::find("nowhere/mine.toml") else { panic!("the file does not exist") };
    assert_eq!(error.to_string(), "cannot read nowhere/mine.toml");
}

#[test]
fn scc_cores_have_tiles_and_controllers() {
    let scc = message_buffers("scc");
    assert_eq!(
        [0, 1, 2, 11, 12, 47].map(|core| scc.tile(core)),
        [(0, 0), (0, 0), (1, 0), (5, 0), (0, 1), (5, 3)]
    );
    assert_eq!([(0, 0), (0, 1), (0, 2), (0, 47)].map(|(a, b)| scc.distance(a, b)), [1, 1, 2, 9]);
    let far = (0..48).flat_map(|a| (0..48).map(move |b| (a, b)));
    assert_eq!(far.map(|(a, b)| scc.distance(a, b)).max(), Some(9));
    // A core's controller is the one of its quadrant.
    for core in 0..48 {
        let (x, y) = scc.tile(core);
        let of_quadrant = (if x < 3 { 0 } else { 5 }, if y < 2 { 0 } else { 2 });
        assert_eq!(scc.controller(core), of_quadrant, "core {core}");
    }
    assert_eq!([0, 4, 12, 16].map(|core| scc.memory_distance(core)), [1, 3, 2, 4]);
    let receivers = 47.0;
    let all_ns =
        scc.interrupt.latency_ns(scc.ghz) + receivers * scc.interrupt.status_read_ns(scc.ghz);
    assert!((5800.0..6100.0).contains(&(all_ns * scc.ghz)), "{all_ns}");
}

#[test]
fn distances_follow_from_the_layout() {
    let xeon = coherent("xeon-e7-8867l-x8");
    assert_eq!(xeon.distances, ["core", "die", "1 hop", "2 hops"]);
    let distances = [(0, 0), (0, 1), (0, 2), (0, 19), (0, 20), (0, 60), (60, 0), (159, 40)];
    assert_eq!(distances.map(|(a, b)| xeon.distance(a, b)), [0, 0, 1, 1, 2, 3, 3, 3]);
    let opteron = coherent("opteron-6176-x4");
    let distances = [(0, 0), (0, 5), (0, 6), (0, 12), (0, 18), (47, 5)];
    assert_eq!(distances.map(|(a, b)| opteron.distance(a, b)), [0, 1, 2, 3, 4, 4]);
    let tile = coherent("tile-gx36");
    assert_eq!(tile.distances.len(), 11);
    assert_eq!(tile.distances[10], "10 hops");
    assert_eq!([(0, 0), (0, 1), (0, 6), (0, 35)].map(|(a, b)| tile.distance(a, b)), [0, 1, 1, 10]);
}

/// All pairs of threads of a machine have a distance with costs.
#[test]
fn every_distance_has_its_costs() {
    for name in Machine::shipped() {
        let Kind::Coherent(machine) = Machine::find(name).unwrap().kind else { continue };
        let mut seen = vec![false; machine.distances.len()];
        for b in 0..machine.threads() {
            for a in [0, machine.threads() / 2] {
                let distance = machine.distance(a, b);
                assert_eq!(distance, machine.distance(b, a), "{name}: {a} and {b}");
                seen[distance] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen), "{name}: {seen:?}");
        for distance in 0..machine.distances.len() {
            for state in State::ALL {
                assert!(machine.load_ns(state, distance) > 0.0);
                assert!(machine.store_ns(state, distance) > 0.0);
                for op in AtomicOp::ALL {
                    assert!(machine.atomic_ns(op, state, distance) > 0.0);
                }
            }
        }
    }
}

#[test]
fn costs_match_the_tables_in_nanoseconds() {
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and {b}");
    let xeon = coherent("xeon-e7-8867l-x8");
    near(xeon.load_ns(State::Modified, 3), 400.0 / 2.13);
    near(xeon.store_ns(State::Shared, 1), 116.0 / 2.13);
    near(xeon.atomic_ns(AtomicOp::Swap, State::Modified, 2), 324.0 / 2.13);
    // States and operations that do not have their own row.
    near(xeon.load_ns(State::Owned, 1), 44.0 / 2.13);
    near(xeon.store_ns(State::Invalid, 2), 492.0 / 2.13);
    near(xeon.atomic_ns(AtomicOp::Swap, State::Exclusive, 2), 324.0 / 2.13);
    near(xeon.cache_ns(2), 44.0 / 2.13);
    near(xeon.memory_ns(), 355.0 / 2.13);
    let tile = coherent("tile-gx36");
    near(tile.load_ns(State::Shared, 0), 11.0 / 1.2);
    near(tile.load_ns(State::Shared, 1), 45.0 / 1.2);
    near(tile.load_ns(State::Shared, 10), 65.0 / 1.2);
    near(tile.load_ns(State::Shared, 4), (45.0 + 20.0 * 3.0 / 9.0) / 1.2);
    near(tile.atomic_ns(AtomicOp::FetchAdd, State::Modified, 10), 71.0 / 1.2);
}

#[test]
fn hops_follow_from_the_network() {
    let (_, text) = Machine::description("cluster").unwrap();
    let tree = cluster(&text);
    assert_eq!([(0, 0), (0, 31), (0, 32), (1023, 0)].map(|(a, b)| tree.hops(a, b)), [0, 1, 3, 3]);
    assert_eq!((tree.node(15), tree.node(16)), (0, 1));
    assert_eq!([1, 32].map(|b| tree.latency_between_ns(0, b)), [2500.0, 2700.0]);
    assert_eq!(tree.latency_between_ns(7, 7), 0.0);
    let tree = "[network.fat-tree]\narity = 32";
    let torus = cluster(&edited("cluster", tree, "[network.torus]\nsides = [8, 16, 8]"));
    assert_eq!(torus.network, Network::Torus { sides: vec![8, 16, 8] });
    let hops = [(0, 1), (0, 7), (0, 8), (0, 64), (0, 4 + 8 * 8 + 128 * 4)];
    assert_eq!(hops.map(|(a, b)| torus.hops(a, b)), [1, 1, 1, 8, 16]);
}

#[test]
fn invalid_values_are_refused() {
    refused("scc", "hop_ns = 5", "hop_ns = -5", "expected a number of 0 or more, found -5");
    refused("scc", "mpb_ns = 126", "mpb_ns = 0", "expected a number above 0, found 0");
    refused("scc", "mpb_ns = 126", "mpb_ns = inf", "expected a number above 0, found inf");
    refused("scc", "hop_ns = 5", "hop_ns = inf", "expected a number of 0 or more, found inf");
    refused("scc", "hop_ns = 5", "hop_ns = nan", "expected a number of 0 or more, found NaN");
    refused("scc", "overhead_ns = 4000", "overhead_ns = -1", "expected a number above 0");
    refused("scc", "ghz = 0.533", "ghz = \"fast\"", "expected f64");
    refused("scc", "rows = 4", "rows = 0", "expected 1 to 1048576, found 0");
    refused("scc", "rows = 4", "rows = -4", "expected u32");
    refused("scc", "line_bytes = 32", "line_bytes = 0", "expected 1 or more, found 0");
    refused("scc", "latency_cycles = 2000", "latency_cycles = 0", "a number above 0");
    refused(
        "scc",
        "kind = \"message-buffers\"",
        "kind = \"buffers\"",
        "expected one of `coherent`",
    );
    let (_, text) = Machine::description("scc").unwrap();
    let title = text.lines().find(|line| line.starts_with("title")).unwrap();
    refused("scc", title, "title = \" \"", "expected a text");
    refused("scc", "rows = 4", "rows 4", "expected `=`");
    refused(
        "xeon-e7-8867l-x8",
        "modified = [5, 109, 289, 400]",
        "modified = [5, 109, 0, 400]",
        "expected a number above 0, found 0",
    );
    refused("cluster", "nodes = 1024", "nodes = 0", "expected 1 to 1048576, found 0");
    refused("cluster", "[network.fat-tree]", "[network.ring]", "unknown variant `ring`, expected");
}

#[test]
fn missing_or_unknown_keys_are_refused() {
    refused("scc", "hop_ns = 5", "hops_ns = 5", "unknown field `hops_ns`, expected one of");
    refused("cluster", "copy_gbps = 5", "copies_gbps = 5", "unknown field `copies_gbps`");
    for (key, line) in [("hop_ns", "hop_ns = 5"), ("kind", "kind = \"message-buffers\"")] {
        let expected = format!("missing field `{key}`");
        assert_eq!(flaw(&edited("scc", line, "")), (1, expected));
    }
    // A missing key of a table is reported at the table's line.
    let missing = "missing field `latency_cycles`";
    refused_at("[interrupt]", "scc", "latency_cycles = 2000", "", missing);
    let missing = "missing `invalid`";
    refused_at("[load]", "niagara2-x4", "invalid = [176, 176, 266]", "", missing);
}

#[test]
fn contradictory_message_buffers_are_refused() {
    let refused = |old, new, says| refused("scc", old, new, says);
    refused("buffer_bytes = 8192", "buffer_bytes = 8200", "whole number of lines of 32 bytes");
    refused("serve_ns = 11.7", "serve_ns = 127", "at most 126");
    refused("[5, 2]]", "[5, 4]]", "a tile of the 6 x 4 mesh, found [5, 4]");
    let controllers = "controllers = [[0, 0], [5, 0], [0, 2], [5, 2]]";
    refused(controllers, "controllers = []", "at least one memory controller");
    refused("columns = 6", "columns = 1000000", "found 1000000 x 4 x 2");
}

#[test]
fn contradictory_coherent_machines_are_refused() {
    let refused = |old, new, says| refused("xeon-e7-8867l-x8", old, new, says);
    refused("\"1 hop\", \"2 hops\"]", "\"1 hop\"]", "\"1 hop\", \"2 hops\"], as the layout says");
    let numbers = "expected 4 numbers, one for each distance, found";
    refused("shared = [5, 44, 223, 334]", "shared = [5, 44, 223]", numbers);
    refused("shared = [10, 113, 312, 423]", "shared = []", numbers);
    refused("threads = 20", "threads = 7", "divides the 160 threads, found 7");
    let sets = "whole number of sets of 25 lines of 64 bytes";
    refused_at("bytes = 31457280", "xeon-e7-8867l-x8", "ways = 24", "ways = 25", sets);
    refused("bytes = 32768", "bytes = 32769", "whole number of sets of 8 lines of 64 bytes");
    let last = "[2, 2, 2, 1, 1, 1, 2, 0],";
    refused(last, "[2, 2, 2, 1, 1, 1, 2],", "expected 8 numbers, one for each die, found 7");
    refused(
        last,
        "[1, 2, 2, 1, 1, 1, 2, 0],",
        "from die 7 to 0 expected 2 hops, as in the other direction",
    );
    refused(last, "[2, 2, 2, 1, 1, 1, 2, 1],", "from die 7 to 7 expected 0 hops, found 1");
    refused("[0, 1, 1, 2, 1, 2, 2, 2],", "[0, 1, 1, 2, 1, 2, 2, 9],", "expected 1 to 7 hops");
    let shared = |old, new, says| refused_at(new, "niagara2-x4", old, new, says);
    shared("pipelines = 2", "pipelines = 3", "divides the 8 threads of a core, found 3");
    shared("copy_waits = 0.8", "copy_waits = 1.0", "less than 1, found 1");
    let links = "[links]\nplanes = 1\nplane_bytes = 64\nline_ns = 1\n\n[threads]\n";
    refused_at("[links]", "tile-gx36", "[threads]\n", links, "expected a layout of packages");
    let at_home = "atomics = \"cache\"\nstores_at_home = true";
    let says = "expected `atomics = \"home\"`";
    refused_at("stores_at", "xeon-e7-8867l-x8", "atomics = \"cache\"", at_home, says);
    let rows = "expected 8 rows, one for each die, found 7";
    refused_at("hops = [\n", "xeon-e7-8867l-x8", &format!("    {last}\n"), "", rows);
    let named = "expected [\"core\", \"1 hop\", \"11 hops\"], as the layout says";
    refused_at("distances = ", "tile-gx36", "columns = 6", "columns = 7", named);
}

#[test]
fn contradictory_clusters_are_refused() {
    refused("cluster", "arity = 32", "arity = 1", "expected 2 or more nodes below a switch");
    let tree = "[network.fat-tree]\narity = 32";
    let torus = "[network.torus]\nsides = [8, 8]";
    refused_at("sides", "cluster", tree, torus, "expected sides of 1024 nodes, found 64");
    let many = "pes_per_node = 1025";
    refused_at("nodes = 1024", "cluster", "pes_per_node = 16", many, "found 1024 x 1025");
}

/// The groups of the PEs of a node, which replace the last line before them.
const GROUPS: &str = "copy_gbps = 5

[[inside.group]]
pes = 2
transfer_ns = 20

[[inside.group]]
pes = 8
transfer_ns = 40
";

#[test]
fn levels_follow_from_the_description() {
    let one = Nodes::One;
    let around = |machine: &str, pes| {
        let layout = coherent(machine).layout;
        (layout.dies(pes), layout.levels(pes).of_leaders().0)
    };
    let [eight, twelve] = [8, 12].map(Nodes::Blocks);
    assert_eq!(around("epyc-9654-x2", 192), (eight, twelve));
    assert_eq!(around("epyc-9654-x2", 96), (eight, one), "one package");
    assert_eq!(around("epyc-9654-x2", 8), (one, one), "one die");
    let cluster = cluster(&edited("cluster", "copy_gbps = 5\n", GROUPS));
    let Levels { inside, around } = cluster.levels();
    assert_eq!(inside, [eight, Nodes::Blocks(2), one], "from the outermost");
    assert_eq!(around, [Nodes::Blocks(32), one, one], "nodes below a switch, of 1024");
    let times = [1, 2, 8].map(|place| cluster.inside.transfer_between_ns(0, place));
    assert_eq!(times, [20.0, 40.0, 100.0]);
}

#[test]
fn contradictory_groups_are_refused() {
    for (old, new) in [("pes = 8", "pes = 3"), ("pes = 8", "pes = 16"), ("pes = 8", "pes = 2")] {
        let text = edited("cluster", "copy_gbps = 5\n", &GROUPS.replace(old, new));
        let (_, message) = flaw(&text);
        assert!(message.contains("each a part of the next"), "{new}: {message}");
    }
}

proptest! {
    /// A description that is truncated, or in which a part is overwritten or removed, is either
    /// read or refused at one of its lines.
    #[test]
    fn damaged_text_is_read_or_refused(
        name in select(Machine::shipped().collect::<Vec<_>>()),
        at in 0.0..1.0,
        length in 0_usize..40,
        new in "[-0-9.a-z\\[\\]\"=,\n _#{}]{0,12}",
        cut in proptest::bool::weighted(0.2),
    ) {
        let (_, text) = Machine::description(name).unwrap();
        let mut characters: Vec<char> = text.chars().collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss,
            clippy::cast_precision_loss, reason = "a position in a short text")]
        let start = (characters.len() as f64 * at) as usize;
        let end = if cut { characters.len() } else { (start + length).min(characters.len()) };
        characters.splice(start..end, new.chars());
        let text: String = characters.into_iter().collect();
        if let Err(error) = Machine::parse("fuzz.toml", &text) {
            let DescriptionError::Flawed { line, message, .. } = error else { panic!("{error}") };
            prop_assert!(line >= 1 && line <= text.matches('\n').count() + 1, "{line}");
            prop_assert!(!message.is_empty());
        }
    }

    /// With changed numbers, a description is either read or refused. A machine that is read can be
    /// used.
    #[test]
    fn changed_number_is_read_or_refused(
        name in select(Machine::shipped().collect::<Vec<_>>()),
        which in any::<Index>(),
        new in select(vec![
            "0", "1", "-1", "2", "7", "1000", "1048576", "4294967295", "4294967296", "1e308",
            "-1e308", "1e-320", "inf", "-inf", "nan", "9223372036854775807", "true", "\"\"", "[]",
        ]),
    ) {
        let (_, text) = Machine::description(name).unwrap();
        let numbers = numbers(&text);
        let Range { start, end } = numbers[which.index(numbers.len())].clone();
        let text = format!("{}{new}{}", &text[..start], &text[end..]);
        if let Ok(machine) = Machine::parse("fuzz.toml", &text) {
            let last = machine.pes() - 1;
            match machine.kind {
                Kind::Coherent(machine) => {
                    let distance = machine.distance(0, last);
                    prop_assert!(machine.load_ns(State::Shared, distance) >= 0.0);
                }
                Kind::MessageBuffers(machine) => {
                    prop_assert!(machine.distance(0, last) >= 1);
                    prop_assert!(machine.memory_distance(last) >= 1);
                }
                Kind::Cluster(machine) => {
                    let node = machine.node(last);
                    prop_assert!(machine.latency_between_ns(0, node) >= 0.0);
                }
            }
        }
    }
}

/// Returns the ranges of the numbers of a description that are outside comments and strings.
fn numbers(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at);
    let outside = starts.filter(|&at| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        before.ends_with([' ', '[']) && !before.contains(['#', '"'])
    });
    let end = |start: usize| text[start..].find(|c: char| !c.is_ascii_digit() && c != '.');
    outside.map(|start| start..start + end(start).unwrap_or(0)).collect()
}
