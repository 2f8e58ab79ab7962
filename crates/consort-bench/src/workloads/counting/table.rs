//! Shows the methods of a workload as a table.

use super::race::{Times, Workload};
use crate::{
    page::Page,
    units::{ratio, time},
};

/// Adds the times of each size and class to a page.
pub fn show(page: &mut Page, workload: Workload, times: &[Times]) {
    let methods = workload.methods();
    let mut header = vec!["bytes", "class", "transfer"];
    header.extend(methods);
    header.extend(workload.shares());
    header.push("limit");
    let numbers: Vec<usize> = (0..header.len()).filter(|&column| column != 1).collect();
    let row = |times: &Times| {
        let known = |text: Option<String>| text.unwrap_or("-".to_owned());
        let mut row = vec![times.bytes.to_string()];
        row.push(known(times.class.map(|class| class.to_string())));
        row.push(known(times.transfer_ns.map(time)));
        row.extend(times.methods.iter().map(|times| time(times.median)));
        let shares = times.over_counted.iter().take(workload.shares().len());
        row.extend(shares.map(|&over| ratio(1.0 / over)));
        row.push(known(times.transfers[0].map(ratio)));
        row
    };
    page.table(header, times.iter().map(row).collect(), numbers);
    page.paragraph(format!(
        "Times of {}; limit: the first of them in one-way transfers of a cache line.",
        workload.round()
    ));
}
