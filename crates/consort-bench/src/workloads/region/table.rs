//! Shows the rows as tables: one for each class of the transfer, within 80 columns.

use super::{
    race::{ClassResults, Results},
    row::{LEN, OPENMP, Work},
};
use crate::{
    page::Page,
    units::{counted, precision, ratio, size, time},
};

/// Adds the results of several numbers of PEs to a page.
pub fn show(page: &mut Page, all: &[Results]) {
    for results in all {
        page.paragraph(placement(results));
        for one in &results.classes {
            add(page, one);
        }
        page.lines("\n");
    }
    let bytes = size((LEN * size_of::<f64>()) as u64);
    page.paragraph(format!("Ratio: to the first row of the same work. Sums are of {bytes} a PE."));
    page.paragraph("Transfers: the time in one-way transfers of a cache line.");
    for openmp in all.iter().map(|results| &results.openmp).take(1) {
        page.paragraph(match openmp {
            Ok(compiler) => format!("{OPENMP}: a program in C, {compiler}"),
            Err(why) => format!("not measured: {OPENMP}: {why}"),
        });
    }
}

fn add(page: &mut Page, one: &ClassResults) {
    if let (Some(class), Some(transfer_ns)) = (one.class, one.transfer_ns) {
        page.paragraph(format!("{class}: transfer {}", time(transfer_ns)));
    }
    let header = ["", "blocks", "median", "± %", "ratio", "transfers"];
    let columns = if one.class.is_some() { header.len() } else { header.len() - 1 };
    let rows = Work::EVERY.into_iter().flat_map(|work| rows(one, work, columns)).collect();
    page.table(header[..columns].to_vec(), rows, 1..columns);
}

fn placement(results: &Results) -> String {
    let Results { pes, usable_cores, cpus, .. } = results;
    match cpus {
        Some(cpus) => {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("{} one a core (cpu {})", counted(*pes, "PE"), cpus.join(", "))
        }
        None => format!(
            "{} share {}: the times show the scheduler more than the library",
            counted(*pes, "PE"),
            counted(*usable_cores, "core")
        ),
    }
}

/// Returns the name of a work, and its rows.
fn rows(one: &ClassResults, work: Work, columns: usize) -> Vec<Vec<String>> {
    let mut heading = vec![work.name().to_owned()];
    heading.resize(columns, String::new());
    let mut rows = vec![heading];
    for times in one.times.iter().filter(|times| times.work == work) {
        let known = |value: Option<f64>| value.map_or("-".to_owned(), ratio);
        let mut row = vec![
            format!("  {}", times.name),
            times.summary.count.to_string(),
            time(times.summary.median),
            precision(times.summary.precision()),
            known(times.over_first),
            known(times.transfers),
        ];
        row.truncate(columns);
        rows.push(row);
    }
    rows
}
