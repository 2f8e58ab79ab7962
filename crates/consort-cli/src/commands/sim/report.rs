//! The tables for people: times, data moved, and the causes of the time.

use std::time::Duration;

use consort::{Collective, Query};
use consort_bench::{
    harness::Mode,
    simulation::{Conditions, Program, Simulated, Spent},
    units::counted,
};
use consort_sim::Cause;

use super::curves;
use crate::output::{self, brief, finish, table, time, wrapped};

/// The whole report.
pub(super) fn page(
    conditions: &Conditions,
    all: &[Simulated],
    left_out: &[String],
    sweep: bool,
) -> String {
    let mut text = all.first().map_or(String::new(), |one| heading(conditions, &one.program));
    if sweep {
        text += &curves::text(conditions, all);
    } else {
        let same_size = |one: &Simulated, next: &Simulated| one.program.query == next.program.query;
        for of_size in all.chunk_by(same_size) {
            text += &format!("\n{}\n{}", times(conditions, of_size), causes(of_size));
        }
    }
    text += "\n";
    if !sweep {
        text += &wrapped(NOTES);
    }
    for reason in left_out {
        text += &wrapped(&format!("not simulated: {reason}"));
    }
    text + &effort(all)
}

const NOTES: &str = "\
Messages are the sends, puts, gets and signals of all PEs, a call. A PE's time, a call, is the \
mean of all PEs, and below it that of the PE that leaves last; what no cause takes is spent \
waiting.";

/// The settings that all figures have in common.
fn heading(conditions: &Conditions, program: &Program) -> String {
    let Conditions { machine, seed, .. } = conditions;
    let Program { query, root, mode, calls, .. } = program;
    let Query { collective: what, sync, pes, .. } = query;
    let mut text = wrapped(&format!("{what} on {}, {}", machine.title, counted(*pes, "PE")));
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
    text += &wrapped(&format!("{from}{} {how}", counted(*calls, "call")));
    text + &wrapped(&format!("{}, seed {seed}", conditions.how()))
}

/// A table of the times of one size.
fn times(conditions: &Conditions, of_size: &[Simulated]) -> String {
    let Some(Program { query, mode, .. }) = of_size.first().map(|one| &one.program) else {
        return String::new();
    };
    let sized = query.collective != Collective::Barrier;
    let mut text = String::new();
    if sized {
        text += &format!("{}\n", conditions.size(query.bytes));
    }
    let mut header = vec!["algorithm", mode.time_name()];
    header.extend(sized.then_some("MB/s"));
    header.push("messages");
    header.extend(sized.then_some("bytes in them"));
    header.extend(conditions.is_coherent().then_some("transfers"));
    let numbers: Vec<usize> = (1..header.len()).collect();
    let mut table = table(header);
    for one in of_size {
        let mut row = vec![brief(&one.program.candidate), time(one.call_ns)];
        row.extend(one.mbps().map(|mbps| format!("{mbps:.2}")));
        row.push(count(one.messages));
        row.extend(sized.then(|| count(one.message_bytes)));
        row.extend(conditions.is_coherent().then(|| count(one.transfers)));
        table.add_row(row);
    }
    text + &finish(table, &numbers)
}

/// A table of the causes of the time of one size: the mean of all PEs, and the last PE.
fn causes(of_size: &[Simulated]) -> String {
    let mut header = vec!["a PE's time goes to"];
    header.extend(Cause::EVERY.map(Cause::name));
    header.push("waiting");
    let numbers: Vec<usize> = (1..header.len()).collect();
    let mut table = table(header);
    for one in of_size {
        let last = format!("  the last, PE {}", one.last_pe);
        for (name, spent) in [(brief(&one.program.candidate), one.mean), (last, one.last)] {
            let Spent { by_cause_ns, waiting_ns } = spent;
            let spent = by_cause_ns.into_iter().chain([waiting_ns]);
            let cell = |ns: f64| if ns == 0.0 { "-".to_owned() } else { time(ns) };
            table.add_row([name].into_iter().chain(spent.map(cell)));
        }
    }
    finish(table, &numbers)
}

/// A number without decimals if it is whole; means of calls may not be.
fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The number of events and the real time of the simulations.
fn effort(all: &[Simulated]) -> String {
    let took: Duration = all.iter().map(|one| one.took).sum();
    let events: u64 = all.iter().map(|one| one.events).sum();
    output::wrapped(&format!(
        "{} of {events} events took {} here.",
        counted(all.len(), "simulation"),
        time(took.as_secs_f64() * 1e9)
    ))
}
