//! The results of a survey of this machine, and the page for people: a few sentences, and tables.

use consort_bench::{
    limits::survey::{Bandwidth, SurveyFigures},
    page::Page,
    units::size,
};
use consort_console::this_machine::MachineInfo;
use serde::Serialize;

use super::heat;

/// The output of `--json`.
#[derive(Serialize)]
pub(super) struct TopoOutput {
    #[serde(flatten)]
    pub(super) machine: MachineInfo,
    /// The measurements; null if there are none.
    #[serde(flatten)]
    pub(super) measured: Option<SurveyFigures>,
    /// The reason why nothing was measured, unless the budget was 0.
    pub(super) not_measured: Option<String>,
}

/// Returns the whole page.
pub(super) fn page(report: &TopoOutput) -> Page {
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

fn bandwidths(page: &mut Page, measured: &SurveyFigures) {
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

#[cfg(test)]
mod tests {
    use consort_bench::page::Part;

    use super::*;

    #[test]
    fn bandwidths_align_with_their_headers() {
        let row = Bandwidth {
            bytes: 64,
            copy_gbps: 1.0,
            pull_gbps: Some(2.0),
            combine_gbps: 3.0,
            pull_combine_gbps: Some(4.0),
            transfer: None,
        };
        let (transfers, bandwidths) = (Vec::new(), vec![row]);
        let (bandwidth_cpu, bandwidth_neighbour) = (0, Some(1));
        let measured = SurveyFigures { transfers, bandwidth_cpu, bandwidth_neighbour, bandwidths };
        let mut page = Page::default();
        super::bandwidths(&mut page, &measured);
        let [_, Part::Table { header, rows, .. }] = page.parts() else { panic!("{page:?}") };
        let of = |name: &str| {
            header.iter().position(|it| it == name).map(|column| rows[0][column].as_str())
        };
        let shown = ["bytes", "copy", "pull", "combine", "pull, combine"].map(of);
        assert_eq!(shown, [Some("64 B"), Some("1.0"), Some("2.0"), Some("3.0"), Some("4.0")]);
    }
}
