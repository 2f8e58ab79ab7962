//! Shows the programs as tables within 80 columns.

use std::collections::BTreeMap;

use super::race::{Results, Row};
use crate::{
    page::Page,
    units::{counted, number, precision, ratio, time},
};

/// Adds the results of several programs to a page.
pub fn show(page: &mut Page, all: &[Results]) {
    let mut absent: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for results in all {
        let Results { program, condition, threads, cpus, .. } = results;
        let placement = match cpus {
            Some(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                format!("one a core (cpu {})", cpus.join(", "))
            }
            None => "unpinned".to_owned(),
        };
        let threads = counted(*threads, "thread");
        page.paragraph(format!(
            "{}, {}: {}",
            program.name(),
            condition.name(),
            program.iteration()
        ));
        page.paragraph(format!("{threads}, {placement}"));
        let first = results.rows.first().map(|row| row.times.median);
        let rows = results.rows.iter().map(|row| cells(row, first)).collect();
        let header = ["", "launches", "median", "± %", "ratio", "mean", "p99", "cores"];
        page.table(header, rows, 1..header.len());
        page.lines("\n");
        for (name, why) in &results.absent {
            let cell = format!("{}, {}", program.name(), condition.name());
            absent.entry((name, why)).or_default().push(cell);
        }
    }
    page.paragraph("Ratio: of the medians, to the first row. Cores: processor seconds per second.");
    // Libraries that are absent for one reason share a line.
    let mut reasons: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for ((name, why), cells) in absent {
        reasons.entry((why, cells)).or_default().push(name);
    }
    for ((why, cells), names) in reasons {
        let is_everywhere = cells.len() == all.len();
        let within = if is_everywhere { String::new() } else { format!(" ({})", cells.join("; ")) };
        page.paragraph(format!("not measured: {}{within}: {why}", names.join(", ")));
    }
}

fn cells(row: &Row, first_ns: Option<f64>) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    vec![
        row.runtime.name.to_owned(),
        row.launches.to_string(),
        time(row.times.median),
        precision(row.times.precision()),
        known(first_ns.map(|first| ratio(row.times.median / first))),
        time(row.mean_ns),
        time(row.times.p99),
        known(row.busy_cores.map(number)),
    ]
}
