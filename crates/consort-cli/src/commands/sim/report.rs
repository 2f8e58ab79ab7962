//! The tables for people: times, data moved, and the causes of the time.

use std::time::Duration;

use consort::Collective;
use consort_bench::{
    harness::Mode,
    simulation::{Conditions, Simulated, Spent},
};
use consort_collectives::PlanError;
use consort_sim::Cause;

use super::curves;
use crate::output::{self, brief, finish, table, time, wrapped};

/// The whole report.
pub(super) fn page(
    conditions: &Conditions,
    all: &[Simulated],
    unable: &[PlanError],
    sweep: bool,
) -> String {
    let mut text = heading(conditions);
    if sweep {
        text += &curves::text(conditions, all);
    } else {
        for of_size in all.chunk_by(|one, next| one.bytes == next.bytes) {
            text += &format!("\n{}\n{}", times(conditions, of_size), causes(of_size));
        }
    }
    text += "\n";
    if !sweep {
        text += &wrapped(NOTES);
    }
    for error in unable {
        text += &wrapped(&format!("not simulated: {error}"));
    }
    text + &effort(all)
}

const NOTES: &str = "\
Messages are the sends, puts, gets and signals of all PEs, a call. A PE's time, a call, is the \
mean of all PEs, and below it that of the PE that leaves last; what no cause takes is spent \
waiting.";

/// The settings that all figures have in common.
fn heading(conditions: &Conditions) -> String {
    let Conditions { what, machine, pes, root, sync, mode, calls, seed, .. } = conditions;
    let s = |count: u64| if count == 1 { "" } else { "s" };
    let mut text = wrapped(&format!("{what} on {}, {pes} PE{}", machine.title, s(u64::from(*pes))));
    let from = match what {
        Collective::Barrier => String::new(),
        Collective::Broadcast | Collective::Scatter => format!("from PE {root}, sync {sync}, "),
        Collective::Reduce | Collective::Gather => format!("to PE {root}, sync {sync}, "),
        _ => format!("sync {sync}, "),
    };
    let calls = match mode {
        Mode::Latency => format!(
            "{calls} call{} alone (latency): from the first entry to the last exit",
            s(*calls)
        ),
        Mode::Throughput => {
            format!("{calls} call{} in a row (throughput): from last exit to last exit", s(*calls))
        }
    };
    text += &wrapped(&format!("{from}{calls}"));
    text + &wrapped(&format!("{}, seed {seed}", conditions.how()))
}

/// A table of the times of one size.
fn times(conditions: &Conditions, of_size: &[Simulated]) -> String {
    let sized = conditions.what != Collective::Barrier;
    let mut text = String::new();
    if let (true, Some(first)) = (sized, of_size.first()) {
        text += &format!("{}\n", conditions.size(first.bytes));
    }
    let mut header = vec!["algorithm", conditions.mode.time_name()];
    header.extend(sized.then_some("MB/s"));
    header.push("messages");
    header.extend(sized.then_some("bytes in them"));
    header.extend(conditions.is_coherent().then_some("transfers"));
    let numbers: Vec<usize> = (1..header.len()).collect();
    let mut table = table(header);
    for one in of_size {
        let mut row = vec![brief(&one.candidate), time(one.call_ns)];
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
        for (name, spent) in [(brief(&one.candidate), one.mean), (last, one.last)] {
            let Spent { by_cause_ns, waiting_ns } = spent;
            let spent = by_cause_ns.into_iter().chain([waiting_ns]);
            table.add_row([name].into_iter().chain(spent.map(nothing_or_time)));
        }
    }
    finish(table, &numbers)
}

/// A time; `-` if it is 0.
fn nothing_or_time(ns: f64) -> String {
    if ns == 0.0 { "-".to_owned() } else { time(ns) }
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
        "{} simulation{} of {events} events took {} here.",
        all.len(),
        if all.len() == 1 { "" } else { "s" },
        time(took.as_secs_f64() * 1e9)
    ))
}
