//! A machine as text: its parts, and the times of its operations in nanoseconds.

use consort_bench::units::{self, counted};
use consort_sim::machines::{
    AtomicOp, AtomicsAt, Cluster, Coherent, Costs, Kind, Layout, Machine, MessageBuffers, Network,
    Placement, State, StoreOrder,
};

use consort_console::output::{finish, table, time, wrapped};

/// The largest number of distances to show next to each other. If there are more, the first two and
/// the last are shown.
const DISTANCES_SHOWN: usize = 6;

/// The names of [`State::ALL`].
const STATES: [&str; 5] = ["modified", "owned", "exclusive", "shared", "invalid"];
/// The names of [`AtomicOp::ALL`].
const OPS: [&str; 4] = ["compare and swap", "fetch and add", "test and set", "swap"];

/// The names and values of a machine's parts.
type Facts = Vec<(&'static str, String)>;

/// Returns the description of a machine as text.
pub(crate) fn page(machine: &Machine) -> String {
    let (facts, costs) = match &machine.kind {
        Kind::Coherent(machine) => (coherent(machine), coherent_costs(machine)),
        Kind::MessageBuffers(machine) => (buffers(machine), buffer_costs(machine)),
        Kind::Cluster(machine) => (cluster(machine), cluster_costs(machine)),
    };
    let mut parts = table(["parameter", "value"]);
    parts.add_row(["kind", machine.kind.name()]);
    parts.add_row(["PEs", &machine.pes().to_string()]);
    for (name, value) in facts {
        parts.add_row([name, &value]);
    }
    let parts = finish(parts, &[]);
    format!(
        "{}{}\n{parts}\n{costs}\n{}",
        wrapped(&format!("{}: {}", machine.name, machine.title)),
        wrapped(&format!("from {}", machine.source)),
        wrapped(
            &(machine.provenance.in_words()
                + " The description gives the source or the reason of each: add --source.")
        ),
    )
}

fn coherent(machine: &Coherent) -> Facts {
    let layout = match &machine.layout {
        Layout::Packages {
            packages, dies_per_package, cores_per_die, threads_per_core, ..
        } => [
            counted(*packages, "package"),
            counted(*dies_per_package, "die"),
            counted(*cores_per_die, "core"),
            counted(*threads_per_core, "thread"),
        ]
        .join(" x "),
        Layout::Mesh { columns, rows } => format!("mesh of {columns} x {rows} cores"),
    };
    let mut facts = vec![
        ("layout", layout),
        ("clock", format!("{} GHz", machine.ghz)),
        ("line", units::size(machine.line_bytes as u64)),
    ];
    for (level, cache) in machine.caches.iter().enumerate() {
        let size = units::size(cache.bytes as u64);
        let (latency, threads) = (time(machine.cache_ns(level)), counted(cache.threads, "thread"));
        facts.push(("cache", format!("{size} for {threads}, {latency}")));
    }
    let memory = &machine.memory;
    facts.extend([
        (
            "memory",
            format!(
                "{}, {} of {} GB/s",
                time(machine.memory_ns()),
                counted(memory.controllers, "controller"),
                memory.gbps
            ),
        ),
        ("lines in flight", machine.lines_in_flight.to_string()),
        ("copying in the cache", format!("{} GB/s", machine.copy_gbps)),
        ("combining in the cache", format!("{} GB/s", machine.combine_gbps)),
        ("a transfer occupies", format!("its line for {}", time(machine.line_serve_ns))),
    ]);
    if let Some(ns) = machine.hub_ns {
        facts.push(("and also", format!("the whole machine for {}", time(ns))));
    }
    if let Some(queue) = &machine.queue {
        let (words, ways) = (queue.words, queue.ways);
        let ns = |cycles: f64| time(cycles / machine.ghz);
        let (message, hop) = (ns(queue.message_cycles), ns(queue.hop_cycles));
        let text = format!("{words} words, {ways} ways, {message} per message and {hop} per hop");
        facts.push(("message queue", text));
    }
    if let Some(threads) = &machine.threads {
        let atomics = match threads.atomics {
            AtomicsAt::Cache => "in the cache of the core",
            AtomicsAt::Home => "at the line's home",
        };
        let stores = match threads.stores {
            StoreOrder::InOrder => "in order",
            StoreOrder::Overlapping => "overlapping",
        };
        facts.push(("atomic operations", atomics.to_owned()));
        facts.push(("store buffer", format!("{} stores, {stores}", threads.store_buffer)));
    }
    facts
}

/// Returns a row for each operation and each state that has a row in the description.
fn coherent_costs(machine: &Coherent) -> String {
    let last = machine.distances.len() - 1;
    let columns: Vec<usize> =
        if last < DISTANCES_SHOWN { (0..=last).collect() } else { vec![0, 1, last] };
    let mut header = vec!["operation".to_owned(), "line is".to_owned()];
    header.extend(columns.iter().map(|&distance| machine.distances[distance].clone()));
    let mut costs = table(header);
    let mut add = |operation: &str, given: &Costs, ns: &dyn Fn(State, usize) -> f64| {
        for (state, name) in State::ALL.into_iter().zip(STATES) {
            let is_given = match state {
                State::Modified | State::Shared => true,
                State::Owned => given.owned.is_some(),
                State::Exclusive => given.exclusive.is_some(),
                State::Invalid => given.invalid.is_some(),
            };
            if is_given {
                let mut row = vec![operation.to_owned(), name.to_owned()];
                row.extend(columns.iter().map(|&distance| time(ns(state, distance))));
                costs.add_row(row);
            }
        }
    };
    add("load", &machine.load, &|state, distance| machine.load_ns(state, distance));
    add("store", &machine.store, &|state, distance| machine.store_ns(state, distance));
    let atomic = &machine.atomic;
    let others = [&atomic.fetch_add, &atomic.test_and_set, &atomic.swap];
    if others.iter().all(|other| other.is_none()) {
        let op = AtomicOp::CompareExchange;
        add("atomic", &atomic.compare_exchange, &|s, d| machine.atomic_ns(op, s, d));
    } else {
        for (op, name) in AtomicOp::ALL.into_iter().zip(OPS) {
            add(name, &atomic.compare_exchange, &|s, d| machine.atomic_ns(op, s, d));
        }
    }
    let numbers: Vec<usize> = (2..2 + columns.len()).collect();
    finish(costs, &numbers)
}

fn buffers(machine: &MessageBuffers) -> Facts {
    let MessageBuffers { columns, rows, cores_per_tile, ghz, interrupt, .. } = machine;
    let tiles: Vec<String> =
        machine.controllers.iter().map(|[x, y]| format!("({x},{y})")).collect();
    let mut facts = vec![
        ("layout", format!("mesh of {columns} x {rows} tiles x {cores_per_tile} cores")),
        ("clock", format!("{ghz} GHz")),
        ("line", units::size(machine.line_bytes as u64)),
        ("message buffer", format!("{} per core", units::size(machine.buffer_bytes as u64))),
        ("cache", format!("{} per core", units::size(machine.cache_bytes as u64))),
        ("memory controllers", format!("at {}", tiles.join(", "))),
        ("a line occupies", format!("the buffers of a tile for {}", time(machine.serve_ns))),
        ("reading a flag", format!("{} in addition to its line", time(machine.flag_read_ns))),
        (
            "interrupt",
            format!(
                "{}, and {} of the status registers for each receiver",
                time(interrupt.latency_ns(*ghz)),
                time(interrupt.status_read_ns(*ghz))
            ),
        ),
    ];
    if let Some(link) = machine.link {
        let line_ns = link.flit_ns * f64::from(link.line_flits);
        facts.push((
            "a link passes",
            format!("a flit in {}, a line in {}", time(link.flit_ns), time(line_ns)),
        ));
    }
    if let Some(ns) = machine.overhead_ns {
        facts.push(("overhead of a call", time(ns)));
    }
    facts
}

/// Returns a row for each part of a put or get, near and far.
fn buffer_costs(machine: &MessageBuffers) -> String {
    let farthest = machine.columns + machine.rows - 1;
    let mut costs = table(["operation", "1 router", &format!("{farthest} routers")]);
    for (name, ns) in [
        ("move a line from or to a message buffer", machine.mpb_ns),
        ("read a line of memory", machine.memory_read_ns),
        ("write a line of memory", machine.memory_write_ns),
    ] {
        // For a round trip.
        let at = |routers: u32| time(ns + 2.0 * f64::from(routers) * machine.hop_ns);
        costs.add_row([name.to_owned(), at(1), at(farthest)]);
    }
    for (name, ns) in [
        ("a put from the core's message buffer, excluding its lines", machine.put_ns),
        ("a get to the core's message buffer, excluding its lines", machine.get_ns),
        ("a put from memory, excluding its lines", machine.put_memory_ns),
        ("a get to memory, excluding its lines", machine.get_memory_ns),
    ] {
        costs.add_row([name.to_owned(), time(ns), time(ns)]);
    }
    finish(costs, &[1, 2])
}

fn cluster(machine: &Cluster) -> Facts {
    let network = match &machine.network {
        Network::FatTree { arity } => format!("fat tree, {arity} below a switch"),
        Network::Torus { sides } => {
            let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
            format!("torus of {}", sides.join(" x "))
        }
    };
    let Cluster { nodes, pes_per_node, interfaces_per_node, gap_per_byte_ns, .. } = machine;
    let placement = match machine.placement {
        Placement::Blocks => "consecutive PEs on a node",
        Placement::InTurn => "PEs on all nodes in turn",
    };
    let computing = machine.compute.as_ref();
    let computing =
        computing.map(|it| ("computing in a node", format!("{} Gflop/s", it.node_gflops)));
    let facts = [
        ("layout", format!("{nodes} nodes x {pes_per_node} PEs")),
        ("placement", placement.to_owned()),
        ("network", network),
        ("interfaces of a node", interfaces_per_node.to_string()),
        ("bandwidth of an interface", format!("{:.3} GB/s", 1.0 / gap_per_byte_ns)),
        ("copying in a node", format!("{} GB/s", machine.inside.copy_gbps)),
    ];
    facts.into_iter().chain(computing).collect()
}

fn cluster_costs(machine: &Cluster) -> String {
    let mut costs = table(["a message", "in a node", "between nodes"]);
    let Cluster { inside, hop_ns, gap_ns, gap_per_byte_ns, .. } = machine;
    for (name, inner, outer) in [
        ("latency", Some(inside.transfer_ns), machine.latency_ns),
        ("latency of each additional hop", None, *hop_ns),
        ("overhead, at either end", Some(inside.overhead_ns), machine.overhead_ns),
        ("gap to the next message", None, *gap_ns),
        ("gap per byte", Some(1.0 / inside.copy_gbps), *gap_per_byte_ns),
    ] {
        costs.add_row([name.to_owned(), inner.map_or("-".to_owned(), time), time(outer)]);
    }
    finish(costs, &[1, 2])
}
