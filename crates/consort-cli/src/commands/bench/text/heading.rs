//! The lines above the tables: the timed work, its PEs, and the way of measurement.

use consort::{
    launch::{Fabric, MachineShape, ProcessShape},
    tune::Arrival,
};
use consort_bench::{
    harness::{Communication, Mode, Pattern, RunSettings, SKEW_NS},
    page::Page,
    units::counted,
};

/// Adds the settings that all figures have in common.
pub(super) fn heading(page: &mut Page, run: &RunSettings) {
    let RunSettings { fabric, what, pes, waiting, usable_cores: cores, .. } = run;
    let is_placed = fabric.shape().is_some();
    let placement = match &run.cpus {
        _ if is_placed => "placed by the launcher".to_owned(),
        Some(cpus) => {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("one a core (cpu {})", cpus.join(", "))
        }
        None => format!("on {}, unpinned", counted(*cores, "usable core")),
    };
    let order = fabric.shape().map_or("", |shape| order(shape));
    let are = match fabric {
        Fabric::Threads => String::new(),
        Fabric::Processes => " that are processes,".to_owned(),
        Fabric::Mpi(ProcessShape { pes_each: 1, .. }) => {
            " that are processes of an MPI,".to_owned()
        }
        Fabric::Mpi(_) => format!(" of an MPI's processes {order},"),
        Fabric::Mixed(MachineShape { processes, process }) => format!(
            " of machines {order}, each with {} that share memory ({fabric}),",
            counted(processes.unwrap_or(1) * process.pes_each, "PE"),
        ),
    };
    page.paragraph(format!(
        "{what}, {}{are} {placement}, waiting by {waiting}",
        counted(*pes, "PE")
    ));
    let calls = match run.mode {
        Mode::Throughput => "calls in a row (throughput), the time of the slowest PE",
        Mode::Latency => "each call alone (latency), from the first start to the last end",
    };
    page.paragraph(calls);
    arrival(run).into_iter().for_each(|text| page.paragraph(text));
    data(run).into_iter().for_each(|text| page.paragraph(text));
    if run.cpus.is_none() && !is_placed {
        page.paragraph(format!(
            "{pes} PEs share {cores} cores: the times show the scheduler more than the \
             algorithm"
        ));
    }
}

/// Returns how ranks are dealt to processes, or to machines.
fn order(shape: ProcessShape) -> &'static str {
    if shape.in_turn { "in turn" } else { "in blocks" }
}

/// Returns how the PEs arrive at a call.
fn arrival(run: &RunSettings) -> Option<String> {
    if matches!(run.what, Communication::PointToPoint(_)) {
        return None;
    }
    Some(match (run.conditions.arrival, run.mode) {
        (Arrival::Together, _) => "all PEs enter a call together".to_owned(),
        (Arrival::Skewed, Mode::Throughput) => format!(
            "skewed by random work of up to {SKEW_NS} ns before each call, which is subtracted"
        ),
        (Arrival::Skewed, Mode::Latency) => format!(
            "skewed by random work of up to {SKEW_NS} ns before each call: counts from the last \
             start"
        ),
    })
}

/// Returns the data that a call moves, and its memory.
fn data(run: &RunSettings) -> Option<String> {
    Some(match run.what {
        what if what.is_barrier() => return None,
        Communication::Collective(_) => {
            let memory = if run.symmetric { "symmetric memory" } else { "private slices" };
            let turns = match run.conditions.buffers {
                1 => "one buffer, reused".to_owned(),
                count => format!("{count} buffers in turn"),
            };
            let is_rewritten = run.rewrites();
            let rewritten =
                if is_rewritten { "rewritten before each call" } else { "not rewritten" };
            format!("{memory}, {turns}, {rewritten}")
        }
        Communication::PointToPoint(Pattern::PutSignal) => format!(
            "a call is a round trip, of a put with a signal; of MPI, by {}",
            Pattern::PutSignal.operations_of_mpi()
        ),
        Communication::PointToPoint(pattern) => format!(
            "a call is {messages} puts and a quiet; of MPI, {messages} messages by {}, and an \
             empty one back",
            pattern.operations_of_mpi(),
            messages = pattern.messages().unwrap_or(1),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::tests::run, *};
    use consort_console::output;

    fn heading(run: &RunSettings) -> String {
        let mut page = Page::default();
        super::heading(&mut page, run);
        output::page(&page)
    }

    #[test]
    fn heading_describes_the_measurement() {
        let text = heading(&run());
        for part in ["one a core (cpu 0, 1)", "spin-yield", "latency", "reused", "rewritten"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let shared = heading(&RunSettings { cpus: None, pes: 16, ..run() });
        assert!(shared.contains("16 PEs share 2 cores"), "{shared}");
        let what = Communication::PointToPoint(Pattern::PutRate);
        let puts = heading(&RunSettings { what, ..run() }).replace('\n', " ");
        assert!(puts.contains("a call is 64 puts and a quiet; of MPI, 64 messages"), "{puts}");
        assert!(!puts.contains("together"), "{puts}");
        let process = ProcessShape { pes_each: 1, in_turn: true };
        let fabric = Fabric::Mixed(MachineShape { processes: Some(2), process });
        let mixed = heading(&RunSettings { fabric, cpus: None, ..run() }).replace('\n', " ");
        assert!(
            mixed.contains("in turn, each with 2 PEs that share memory (mixed:2x1:in-turn)"),
            "{mixed}"
        );
        let fabric = Fabric::Mpi(ProcessShape::SINGLE);
        let placed = heading(&RunSettings { fabric, cpus: None, ..run() });
        let is_known = placed.contains("share") || placed.contains("one a core");
        assert!(placed.contains("placed by the launcher") && !is_known, "{placed}");
    }
}
