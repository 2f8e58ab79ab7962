//! Writes the description of a measured machine, with a comment on the source of each number.

use super::{
    layout::{Cache, Plan},
    measure::{Between, Measured},
};

/// The smallest part of a transfer's time that its store may take.
const LEAST_STORE: f64 = 0.1;

/// Returns the description of a machine called `title`. `when` is a line that says on which
/// machine, when and with which build it was measured.
pub fn description(plan: &Plan, measured: &Measured, title: &str, when: &str) -> String {
    let mut text = head(measured, title, when);
    text += &core(plan, measured);
    text += &layout(plan);
    text += &lines(measured);
    for (cache, &ns) in plan.caches.iter().zip(&measured.caches_ns) {
        text += &level(cache, measured.cycles(ns));
    }
    text + &memory(measured)
}

impl Measured {
    fn cycles(&self, ns: f64) -> f64 {
        ns * self.ghz
    }

    /// Returns the time of a load that finds its line in the nearest cache.
    fn own_ns(&self) -> f64 {
        self.caches_ns.first().copied().unwrap_or(1.0)
    }

    /// Returns the time of a load of a line that another core has just written, for each distance.
    /// The load is a part of the transfer.
    fn loads_ns(&self) -> Vec<f64> {
        let load =
            |between: &Between| between.load_ns.min(between.transfer_ns * (1.0 - LEAST_STORE));
        self.between.iter().map(load).collect()
    }

    /// Returns a row of costs in cycles: first for the core's own line, then for each distance.
    fn row(&self, own_ns: f64, others_ns: impl IntoIterator<Item = f64>) -> String {
        let all_ns = std::iter::once(own_ns).chain(others_ns);
        let cells: Vec<String> =
            all_ns.map(|ns| format!("{:.1}", self.cycles(ns).max(0.1))).collect();
        format!("[{}]", cells.join(", "))
    }
}

fn head(measured: &Measured, title: &str, when: &str) -> String {
    let rounds = |between: &Between| {
        let (kept, all) = between.rounds;
        format!("{kept} of {all}")
    };
    let rounds: Vec<String> = measured.between.iter().map(rounds).collect();
    format!(
        "\
# This machine, measured by `consort-lab calibrate`, which overwrites this file each time.
# {when}
# Rounds of measurements between cores that count, by distance: {rounds}. In the
# others, the first and the last transfer differ, for instance because virtual cores move.
title = {title:?}
source = \"measured by consort-lab calibrate\"
kind = \"coherent\"
",
        when = when.replace("; ", "\n# "),
        rounds = if rounds.is_empty() { "none".to_owned() } else { rounds.join(", ") },
    )
}

fn core(plan: &Plan, measured: &Measured) -> String {
    let names: Vec<String> = std::iter::once("core")
        .chain(plan.distances.iter().map(|distance| distance.name))
        .map(|name| format!("{name:?}"))
        .collect();
    let pull_gbps = measured.between.first().map_or(0.0, |near| near.pull_gbps);
    let load_ns = measured.loads_ns().first().copied().unwrap_or(measured.own_ns());
    format!(
        "
# Measured with instructions of one cycle, each of which needs the previous one.
ghz = {ghz:.3}
line_bytes = {line_bytes}
distances = [{names}]
# The lines in flight while a core copies, at {pull_gbps:.1} GB/s, data that the nearest core has
# just written, if each line takes as long as a load of it.
lines_in_flight = {in_flight:.1}
# A copy, and a sum of doubles, in the core's second cache.
copy_gbps = {copy:.1}
combine_gbps = {combine:.1}
# Assumption: a line is occupied for half of the time that the nearest core's load takes.
line_serve_ns = {serve:.1}
",
        ghz = measured.ghz,
        line_bytes = plan.line_bytes,
        names = names.join(", "),
        in_flight = (load_ns * pull_gbps / plan.line_bytes as f64).round().max(1.0),
        copy = measured.copy_gbps,
        combine = measured.combine_gbps,
        serve = load_ns / 2.0,
    )
}

fn layout(plan: &Plan) -> String {
    let dies = plan.packages * plan.dies_per_package;
    let row = |a| format!("{:?}", (0..dies).map(|b| u8::from(a != b)).collect::<Vec<u8>>());
    format!(
        "
[layout.packages]
packages = {packages}
dies_per_package = {dies_per_package}
cores_per_die = {cores_per_die}
# A job gives each PE its own core while there are free ones.
threads_per_core = 1
# Assumption: all dies are equally far apart.
hops = [{hops}]
",
        packages = plan.packages,
        dies_per_package = plan.dies_per_package,
        cores_per_die = plan.cores_per_die,
        hops = (0..dies).map(row).collect::<Vec<String>>().join(", "),
    )
}

fn lines(measured: &Measured) -> String {
    let loads_ns = measured.loads_ns();
    let (own_ns, atomic_ns) = (measured.own_ns(), measured.fetch_add_ns);
    // A transfer is a store, which invalidates the waiting core's copy, and the next load of that
    // core.
    let stores_ns =
        measured.between.iter().zip(&loads_ns).map(|(between, load)| between.transfer_ns - load);
    format!(
        "
[load]
# Each load needs the previous one. The lines have just been written by another core. The first
# number of a row is for the core's own cache.
modified = {load}
# Assumption: a core with a copy answers as fast as the core that wrote the line.
shared = {load}
invalid = {invalid}

[store]
# Assumption: the same as a load, because the line must be transferred too.
modified = {load}
# The one-way transfer of a line, minus the load that is a part of it.
shared = {store}

[atomic.compare_exchange]
# A load, and an atomic addition to a word in the core's own cache: {atomic_ns:.1} ns.
modified = {atomic}
# Assumption: the same.
shared = {atomic}
",
        load = measured.row(own_ns, loads_ns.iter().copied()),
        invalid = measured.row(measured.memory_ns, loads_ns.iter().map(|_| measured.memory_ns)),
        store = measured.row(own_ns, stores_ns),
        atomic = measured.row(atomic_ns, loads_ns.iter().map(|load| load + atomic_ns)),
    )
}

fn level(cache: &Cache, cycles: f64) -> String {
    let origin = match cache.level {
        Some(level) => format!("Level {level}: its size as reported by the machine"),
        None => "Assumption, because the machine does not report it: its size".to_owned(),
    };
    format!(
        "
# {origin}; latency from loads, each of which needs the previous one.
[[cache]]
bytes = {bytes}
ways = {ways}
latency_cycles = {cycles:.1}
threads = {threads}
",
        bytes = cache.bytes,
        ways = cache.ways,
        threads = cache.cores,
    )
}

fn memory(measured: &Measured) -> String {
    let copy_gbps = measured.memory_copy_gbps;
    format!(
        "
[memory]
load_cycles = {cycles:.1}
# Assumption: one controller for all cores.
controllers = 1
# A copy moves each byte twice: {copy_gbps:.1} GB/s were copied.
gbps = {gbps:.1}

# All parameters that are not listed here are measured.
[provenance]
assumed = [
    \"line_serve_ns\", \"layout.packages.hops\", \"load.shared\", \"store.modified\",
    \"atomic.compare_exchange.shared\", \"memory.controllers\",
]
",
        cycles = measured.cycles(measured.memory_ns),
        gbps = 2.0 * copy_gbps,
    )
}

#[cfg(test)]
mod tests {
    use consort_machine::affinity::CpuId;
    use consort_sim::machines::{Kind, Machine, State};

    use super::{super::layout::Distance, *};

    fn plan(packages: usize, names: &[&'static str]) -> Plan {
        let distance = |&name: &&'static str| Distance { name, pairs: Vec::new() };
        Plan {
            cpus: vec![CpuId(0)],
            packages,
            dies_per_package: 2,
            cores_per_die: 4,
            line_bytes: 64,
            caches: vec![Cache { level: None, bytes: 1 << 20, ways: 8, cores: 1 }],
            distances: names.iter().map(distance).collect(),
        }
    }

    fn measured(transfers_ns: &[f64]) -> Measured {
        let between = |&transfer_ns: &f64| Between {
            transfer_ns,
            load_ns: 40.0,
            pull_gbps: 16.0,
            rounds: (7, 8),
        };
        Measured {
            ghz: 2.0,
            caches_ns: vec![1.5],
            memory_ns: 90.0,
            memory_copy_gbps: 10.0,
            copy_gbps: 30.0,
            combine_gbps: 20.0,
            fetch_add_ns: 5.0,
            between: transfers_ns.iter().map(between).collect(),
        }
    }

    #[test]
    fn a_transfer_is_a_store_and_a_load() {
        let plan = plan(2, &["die", "package", "1 hop"]);
        let text =
            description(&plan, &measured(&[30.0, 100.0, 200.0]), "two of \"them\"", "in May");
        assert!(text.contains("\n# in May\n"), "{text}");
        let machine = Machine::parse("host.toml", &text).unwrap();
        assert_eq!((machine.name.as_str(), machine.title.as_str()), ("host", "two of \"them\""));
        assert_eq!((machine.provenance.counts.assumed, machine.provenance.counts.fitted), (6, 0));
        let Kind::Coherent(cores) = machine.kind else { panic!("{:?}", machine.kind) };
        assert_eq!(cores.threads(), 16);
        for (distance, transfer_ns, load_ns) in
            [(1, 30.0, 27.0), (2, 100.0, 40.0), (3, 200.0, 40.0)]
        {
            let load = cores.load_ns(State::Modified, distance);
            assert!((load - load_ns).abs() < 0.1, "{load}");
            let transfer = load + cores.store_ns(State::Shared, distance);
            assert!((transfer - transfer_ns).abs() < 0.1, "{transfer}");
        }
        // 27 ns at 16 bytes per nanosecond.
        assert_eq!((cores.lines_in_flight, cores.memory.gbps), (7.0, 20.0));
    }

    #[test]
    fn machine_of_one_core_is_described() {
        let plan = Plan { dies_per_package: 1, cores_per_die: 1, ..plan(1, &[]) };
        let text = description(&plan, &measured(&[]), "one", "");
        assert_eq!(Machine::parse("host.toml", &text).unwrap().pes(), 1);
    }
}
