//! The report for people: a few sentences, and tables.

use consort_bench::{
    limits::survey::{Bandwidth, Measured},
    units::{counted, size},
};

use super::{
    heat,
    machine::{Caches, Limit, Machine, Report},
};
use crate::output::{finish, table};

/// The whole report.
pub(super) fn page(report: &Report) -> String {
    let mut text = machine(&report.machine);
    text += "\n";
    text += &caches(&report.machine.caches);
    if let Some(measured) = &report.measured {
        if !measured.transfers.is_empty() {
            text += "\nOne-way transfer of a cache line, ns\n";
            text += &heat::map(&measured.transfers);
        }
        text += &bandwidths(measured);
    }
    if let Some(reason) = &report.not_measured {
        text += &format!("\nnot measured: {reason}\n");
    }
    text
}

fn machine(machine: &Machine) -> String {
    let Machine { processor, cores, threads_per_core, packages, numa_nodes, .. } = machine;
    let cpus = machine.cpus.len();
    let threads = if *threads_per_core > 1 {
        format!(" of up to {threads_per_core} threads")
    } else {
        String::new()
    };
    format!(
        "{processor}\n{} on {}{threads}, {}, {}\n{}\n",
        counted(cpus, "processor"),
        counted(*cores, "core"),
        counted(*packages, "package"),
        counted(*numa_nodes, "NUMA node"),
        usable(machine),
    )
}

/// The number of usable cores, and the reason.
fn usable(machine: &Machine) -> String {
    let cpus = machine.cpus.len();
    let quota = machine.quota_cores.map(|cores| format!("a cgroup's quota of {cores} cores"));
    let allowed = format!("{} of {cpus} ({})", machine.allowed.len(), ranges(&machine.allowed));
    let why = match (machine.limited_by, quota) {
        (Some(Limit::Quota), Some(quota)) => format!("{quota}; processors allowed: {allowed}"),
        (Some(_), Some(quota)) => format!("processors allowed: {allowed}; {quota} does not bind"),
        (Some(_), None) => format!("processors allowed: {allowed}; no quota"),
        (None, Some(quota)) => format!("all processors are allowed; {quota} does not bind"),
        (None, None) => "all processors are allowed; no quota".to_owned(),
    };
    format!("{}: {why}", counted(machine.usable_cores, "usable core"))
}

fn caches(caches: &[Caches]) -> String {
    let mut table = table(["cache", "size", "line", "count", "processors each"]);
    for cache in caches {
        table.add_row([
            format!("L{} {}", cache.level, cache.kind),
            size(cache.bytes),
            format!("{} B", cache.line_bytes),
            cache.count.to_string(),
            cache.shared_by.to_string(),
        ]);
    }
    finish(table, &[1, 2, 3, 4])
}

fn bandwidths(measured: &Measured) -> String {
    let mut table = table(["bytes", "copy", "pull", "combine", "pull, combine", "transfer, ns"]);
    for row in &measured.bandwidths {
        let Bandwidth { bytes, copy_gbps, pull_gbps, combine_gbps, pull_combine_gbps, .. } = row;
        let transfer = row.transfer.as_ref();
        table.add_row([
            size(*bytes as u64),
            format!("{copy_gbps:.1}"),
            or_dash(*pull_gbps),
            format!("{combine_gbps:.1}"),
            or_dash(*pull_combine_gbps),
            transfer.map_or("-".to_owned(), |t| format!("{:.1} {}", t.ns, t.class)),
        ]);
    }
    let pulls = match measured.bandwidth_neighbour {
        Some(neighbour) => format!("pulls read what cpu {neighbour} has just rewritten"),
        None => "no second processor to pull from".to_owned(),
    };
    let cpu = measured.bandwidth_cpu;
    format!(
        "\nBandwidth of cpu {cpu}, GB/s of the target; {pulls}\n{}",
        finish(table, &[1, 2, 3, 4, 5])
    )
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

/// Ranges of numbers as the kernel writes them: `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(u32::to_string).collect(),
    });
    runs.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(usable_cores: usize, limited_by: Option<Limit>, quota: Option<f64>) -> String {
        let topology = consort_native::topology::Topology::from_root(
            std::path::Path::new("/nowhere/at/all"),
            &[0, 1, 2, 5].map(consort_native::affinity::CpuId),
        );
        let machine = Machine::of(&topology);
        usable(&Machine { usable_cores, limited_by, quota_cores: quota, ..machine })
    }

    #[test]
    fn usable_cores_have_their_reason() {
        let all = "4 usable cores: all processors are allowed; no quota";
        assert_eq!(limited(4, None, None), all);
        let quota = "1 usable core: a cgroup's quota of 0.5 cores; processors allowed: 4 of 4 \
                     (0-2,5)";
        assert_eq!(limited(1, Some(Limit::Quota), Some(0.5)), quota);
        assert!(limited(4, None, Some(8.0)).ends_with("quota of 8 cores does not bind"));
        let mask = limited(4, Some(Limit::Affinity), None);
        assert_eq!(mask, "4 usable cores: processors allowed: 4 of 4 (0-2,5); no quota");
    }

    #[test]
    fn numbers_in_runs() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn columns_of_numbers_are_aligned() {
        let one = Caches {
            level: 1,
            kind: "data",
            bytes: 32 << 10,
            line_bytes: 64,
            shared_by: 1,
            count: 16,
        };
        let text = caches(&[one]);
        let ends: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(ends[0], ends[1], "{text}");
    }
}
