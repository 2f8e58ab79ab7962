//! The text output: times, moved data, and the causes of the time.

use std::{collections::BTreeSet, time::Duration};

use crate::simulation::{Conditions, Program, Simulated, Spent};
use consort::tune::{Candidate, Collective, Query};
use consort_bench::{harness::Mode, page::Page, units::counted};
use consort_sim::Cause;

use consort_console::output::{brief_in_words, time};

/// Returns the whole page.
pub(super) fn page(
    conditions: &Conditions,
    all: &[Simulated],
    left_out: &[String],
    sweep: bool,
) -> Page {
    let mut page = Page::default();
    all.first().iter().for_each(|one| heading(&mut page, conditions, &one.program));
    if sweep {
        by_size(&mut page, conditions, all);
    } else {
        let same_size = |one: &Simulated, next: &Simulated| one.program.query == next.program.query;
        for of_size in all.chunk_by(same_size) {
            page.lines("\n");
            times(&mut page, conditions, of_size);
            page.lines("\n");
            causes(&mut page, of_size);
        }
    }
    page.lines("\n");
    if !sweep {
        page.paragraph(NOTES);
    }
    for reason in left_out {
        page.paragraph(format!("not simulated: {reason}"));
    }
    page.paragraph(effort(all));
    page
}

/// The largest number of columns of a table that fit next to the sizes.
const COLUMNS: usize = 8;

/// Adds a table with a row for each size and a column for each algorithm.
fn by_size(page: &mut Page, conditions: &Conditions, all: &[Simulated]) {
    let mut candidates: Vec<_> = all.iter().map(|one| &one.program.candidate).collect();
    let mut seen = BTreeSet::new();
    candidates.retain(|candidate| seen.insert(*candidate));
    let sizes: BTreeSet<usize> = all.iter().map(|one| one.program.bytes()).collect();
    let names: Vec<String> = (1..=candidates.len()).map(|number| format!("({number})")).collect();
    page.lines("\n");
    for (name, candidate) in names.iter().zip(&candidates) {
        page.lines(format!("{name} {}\n", candidate.brief()));
    }
    let cell = |candidate: &Candidate, bytes| {
        let is_it =
            |one: &&Simulated| one.program.candidate == *candidate && one.program.bytes() == bytes;
        let value = all.iter().find(is_it).and_then(|one| match one.program.mode {
            Mode::Latency => Some(time(one.call_ns)),
            Mode::Throughput => one.mbps().map(|mbps| format!("{mbps:.2} MB/s")),
        });
        value.unwrap_or("-".to_owned())
    };
    for (names, candidates) in names.chunks(COLUMNS).zip(candidates.chunks(COLUMNS)) {
        let header = ["lines", "bytes"].into_iter().chain(names.iter().map(String::as_str));
        let row = |&bytes: &usize| {
            let size = [bytes / conditions.line_bytes, bytes].map(|it| it.to_string());
            size.into_iter().chain(candidates.iter().map(|one| cell(one, bytes))).collect()
        };
        page.lines("\n");
        page.table(header, sizes.iter().map(row).collect(), 0..names.len() + 2);
    }
}

const NOTES: &str = "\
Messages are the sends, puts, gets and signals of all PEs in a call. A PE's time in a call is the \
mean of all PEs; below it is the time of the PE that leaves last. The rest of the time is spent \
waiting.";

/// Adds the settings that all figures have in common.
fn heading(page: &mut Page, conditions: &Conditions, program: &Program) {
    let Conditions { machine, seed, .. } = conditions;
    let Program { query, root, mode, calls, uneven, .. } = program;
    let Query { collective: what, sync, pes, .. } = query;
    page.paragraph(format!("{what} on {}, {}", machine.title, counted(*pes, "PE")));
    let from = match what {
        Collective::Barrier => String::new(),
        Collective::Broadcast | Collective::Scatter => format!("from PE {root}, sync {sync}, "),
        Collective::Reduce | Collective::Gather => format!("to PE {root}, sync {sync}, "),
        _ => format!("sync {sync}, "),
    };
    let how = match mode {
        Mode::Latency => "alone (latency): from the first entry to the last exit",
        Mode::Throughput => "in a row (throughput): from last exit to last exit",
    };
    page.paragraph(format!("{from}{} {how}", counted(*calls, "call")));
    if *uneven {
        page.paragraph("blocks of random lengths, from 0 to twice the size");
    }
    page.paragraph(format!("{}, seed {seed}", conditions.how()));
}

/// Adds a table of the times of one size.
fn times(page: &mut Page, conditions: &Conditions, of_size: &[Simulated]) {
    let Some(Program { query, mode, .. }) = of_size.first().map(|one| &one.program) else {
        return;
    };
    let sized = query.collective != Collective::Barrier;
    if sized {
        page.lines(format!("{}\n", conditions.size(query.bytes)));
    }
    let mut header = vec!["algorithm", mode.time_name()];
    header.extend(sized.then_some("MB/s"));
    header.push("messages");
    header.extend(sized.then_some("bytes in them"));
    header.extend(conditions.is_coherent().then_some("transfers"));
    let numbers = 1..header.len();
    let fastest = of_size.iter().min_by(|one, other| one.call_ns.total_cmp(&other.call_ns));
    let fastest = fastest.filter(|_| of_size.len() > 1).map(|one| &one.program.candidate);
    let row = |one: &Simulated| {
        let candidate = &one.program.candidate;
        let mark = if Some(candidate) == fastest { " *" } else { "" };
        let mut row = vec![brief_in_words(candidate) + mark, time(one.call_ns)];
        row.extend(one.mbps().map(|mbps| format!("{mbps:.2}")));
        row.push(count(one.messages));
        row.extend(sized.then(|| count(one.message_bytes)));
        row.extend(conditions.is_coherent().then(|| count(one.transfers)));
        row
    };
    page.table(header, of_size.iter().map(row).collect(), numbers);
    if let Some(fastest) = fastest {
        page.paragraph(format!("* marks the fastest, {}", fastest.brief()));
    }
}

/// Adds a table of the causes of the time of one size: the mean of all PEs, and the last PE.
fn causes(page: &mut Page, of_size: &[Simulated]) {
    let mut header = vec!["a PE's time goes to"];
    header.extend(Cause::EVERY.map(Cause::name));
    header.push("waiting");
    let numbers = 1..header.len();
    let mut rows = Vec::new();
    for one in of_size {
        let last = format!("  the last, PE {}", one.last_pe);
        for (name, spent) in [(brief_in_words(&one.program.candidate), one.mean), (last, one.last)]
        {
            let Spent { by_cause_ns, waiting_ns } = spent;
            let spent = by_cause_ns.into_iter().chain([waiting_ns]);
            let cell = |ns: f64| if ns == 0.0 { "-".to_owned() } else { time(ns) };
            rows.push([name].into_iter().chain(spent.map(cell)).collect());
        }
    }
    page.table(header, rows, numbers);
}

/// Returns a number without decimals if it is whole. Means of calls may not be whole.
fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Returns the number of events and the real time of the simulations.
fn effort(all: &[Simulated]) -> String {
    let took: Duration = all.iter().map(|one| one.took).sum();
    let events: u64 = all.iter().map(|one| one.events).sum();
    format!(
        "{} of {events} events took {} here.",
        counted(all.len(), "simulation"),
        time(took.as_secs_f64() * 1e9)
    )
}
