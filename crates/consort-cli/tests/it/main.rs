//! Integration tests of the command and of the whole source tree.

use consort_sandbox as _;

mod bench;
mod calibrate;
mod help;
mod interrupts;
mod machines;
mod model;
mod outputs;
mod own_algorithm;
mod pages;
mod readme;
mod report;
mod run;
mod scc;
mod shmem;
mod sim;
mod tidy;
mod unusual_files;
mod usage;
mod wisdom;

/// Whether a page says this, wherever its lines are broken: that depends on the figures before. For
/// sentences, not for cells of tables: a cell that breaks is on lines between those of others.
fn says(page: &str, words: &str) -> bool {
    let in_a_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    in_a_line(page).contains(&in_a_line(words))
}
