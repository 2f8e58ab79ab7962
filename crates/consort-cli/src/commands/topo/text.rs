//! The page for people: a few sentences, and tables.

use consort_bench::{
    limits::survey::{Bandwidth, Measured},
    page::Page,
    units::size,
};

use super::{heat, outcome::Report};

/// The whole page.
pub(super) fn page(report: &Report) -> Page {
    let mut page = Page::default();
    report.machine.show(&mut page);
    if let Some(measured) = &report.measured {
        if !measured.transfers.is_empty() {
            page.lines("\nOne-way transfer of a cache line, ns\n");
            page.lines(heat::map(&measured.transfers));
        }
        bandwidths(&mut page, measured);
    }
    if let Some(reason) = &report.not_measured {
        page.lines(format!("\nnot measured: {reason}\n"));
    }
    page
}

fn bandwidths(page: &mut Page, measured: &Measured) {
    let row = |row: &Bandwidth| {
        let Bandwidth { bytes, copy_gbps, pull_gbps, combine_gbps, pull_combine_gbps, .. } = row;
        let transfer = row.transfer.as_ref();
        vec![
            size(*bytes as u64),
            format!("{copy_gbps:.1}"),
            or_dash(*pull_gbps),
            format!("{combine_gbps:.1}"),
            or_dash(*pull_combine_gbps),
            transfer.map_or("-".to_owned(), |t| format!("{:.1} {}", t.ns, t.class)),
        ]
    };
    let pulls = match measured.bandwidth_neighbour {
        Some(neighbour) => format!("pulls read what cpu {neighbour} has just rewritten"),
        None => "no second processor to pull from".to_owned(),
    };
    let cpu = measured.bandwidth_cpu;
    page.lines(format!("\nBandwidth of cpu {cpu}, GB/s of the target; {pulls}\n"));
    let header = ["bytes", "copy", "pull", "combine", "pull, combine", "transfer, ns"];
    page.table(header, measured.bandwidths.iter().map(row).collect(), 1..6);
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}
