//! `consort bench lock`, `delegate`, `counter`, `stack` and `queue`: objects of many threads.

use anyhow::{Result, ensure};
use consort_bench::{
    page::Page,
    workloads::critical_sections::{Race, Subject, show},
};
use consort_console::{interrupt, measurement::Measurement, output::progress::Progress, refuse};
use consort_machine::topology::Topology;

use super::arguments::Bench;

/// The most iterations between two operations (Petrović 2015, section 6.2.2).
const BETWEEN: u32 = 50;
/// The most threads for each core, unless others are asked for.
const THREADS_A_CORE: usize = 8;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, subject: Subject, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    let name = subject.name();
    let section = bench.section.filter(|_| !subject.increments()).map(|_| "--section");
    if let Some(option) = bench.beyond_critical_sections().or(section) {
        let section = if subject.increments() { "section, " } else { "" };
        refuse!("{option}: {name} takes threads, {section}between and budget alone");
    }
    let threads = match &bench.threads[..] {
        [] => &threads(Topology::discover().usable_cores()),
        threads => threads,
    };
    let race = Race {
        subject,
        threads,
        increments: bench.section.unwrap_or(1),
        between: bench.between.unwrap_or(BETWEEN).into(),
        budget: bench.budget,
        stop,
    };
    let progress = Progress::new(name);
    let results = race.run(|share| progress.show(share))?;
    drop(progress);
    ensure!(!results.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
    let entries = results.entries();
    let mut page = Page::default();
    show(&mut page, &results);
    bench.tell_entries(measurement, &entries, &page)?;
    Ok("each row has a block of 20 ms at least with each number of threads".to_owned())
}

/// Powers of two, the number of cores, and the most threads on them.
fn threads(cores: usize) -> Vec<usize> {
    let most = THREADS_A_CORE * cores;
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|threads| *threads < most);
    let mut threads: Vec<usize> = powers.chain([cores, most]).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_eight_a_core() {
        assert_eq!(threads(1), [1, 2, 4, 8]);
        assert_eq!(threads(2), [1, 2, 4, 8, 16]);
        assert_eq!(threads(3), [1, 2, 3, 4, 8, 16, 24]);
    }
}
