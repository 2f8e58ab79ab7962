//! The tables for people: one for each size, within 100 columns.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use consort::Collective;
use consort_native::limits::TransferClass;

use super::{
    Buffers,
    figure::{Figure, Setting, share_limits},
};
use crate::{
    bench::{
        limits::Limit,
        session::{Arrival, Mode, SKEW_NS},
    },
    bytes,
};

const COLUMNS: u16 = 100;

/// The whole report; tables get lines on a terminal, and none elsewhere.
pub(super) fn page(setting: &Setting, figures: &[Figure], terminal: bool) -> String {
    let mut text = heading(setting);
    let (missing, shown): (Vec<&Figure>, Vec<&Figure>) =
        figures.iter().partition(|figure| figure.absent.is_some());
    let mut sizes: Vec<Option<usize>> = Vec::new();
    for figure in &shown {
        if !sizes.contains(&figure.bytes) {
            sizes.push(figure.bytes);
        }
    }
    for size in sizes {
        let of_size: Vec<&Figure> =
            shown.iter().copied().filter(|figure| figure.bytes == size).collect();
        text += "\n";
        text += &limits_of(size, &of_size);
        text += &table(setting, size, &of_size, terminal);
    }
    text += &notes(setting, &shown);
    for figure in missing {
        text += &format!("not measured: {}: {}\n", name(figure), figure.absent.as_deref().unwrap_or(""));
    }
    text
}

/// What holds for all figures.
fn heading(setting: &Setting) -> String {
    let Setting { what, pes, waiting, usable_cores: cores, .. } = setting;
    let placement = match &setting.cpus {
        Some(cpus) => {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("one a core (cpu {})", cpus.join(", "))
        }
        None => format!("on {cores} usable core{}, unpinned", if *cores == 1 { "" } else { "s" }),
    };
    let calls = match (setting.mode, setting.conditions.arrival) {
        (Mode::Throughput, Arrival::Together) => {
            "calls in a row (throughput): the slowest PE's time".to_owned()
        }
        (Mode::Throughput, Arrival::Skewed) => format!(
            "calls in a row (throughput), skewed by random work of up to {SKEW_NS} ns before each: \
             what calls add to it"
        ),
        (Mode::Latency, Arrival::Together) => {
            "each call alone (latency): from the first start to the last end".to_owned()
        }
        (Mode::Latency, Arrival::Skewed) => format!(
            "each call alone (latency), skewed by random work of up to {SKEW_NS} ns: from the last \
             start to the last end"
        ),
    };
    let mut text = format!("{what}, {pes} PEs {placement}, waiting by {waiting}\n{calls}\n");
    if *what != Collective::Barrier {
        let memory = match setting.buffers {
            Buffers::Symmetric => "symmetric memory",
            Buffers::Borrowed => "borrowed slices",
        };
        let turns = match setting.conditions.buffers {
            1 => "one buffer, reused".to_owned(),
            count => format!("{count} buffers in turn"),
        };
        let rewritten = match (setting.mode, setting.conditions.rewrite) {
            (Mode::Latency, true) => ", rewritten before each call",
            _ => ", not rewritten",
        };
        text += &format!("{memory}, {turns}{rewritten}\n");
    }
    if setting.cpus.is_none() {
        text += &format!(
            "{pes} PEs share {cores} cores: times are those of the scheduler, more than of the \
             algorithm\n"
        );
    }
    text
}

/// The size, and what the machine could do at it, class by class.
fn limits_of(size: Option<usize>, figures: &[&Figure]) -> String {
    let mut text = size.map_or(String::new(), |bytes| format!("{}\n", bytes::text(bytes)));
    for class in [TransferClass::Near, TransferClass::Far] {
        let of_class = || figures.iter().filter(|figure| figure.c2c_class == Some(class));
        let mut transfers: Vec<f64> = of_class().filter_map(|figure| figure.c2c_ns).collect();
        let mut parts = Vec::new();
        if !transfers.is_empty() {
            let transfer = consort_fabric::statistics::median(&mut transfers);
            parts.push(format!("transfer {transfer:.1} ns"));
        }
        let mut rates = Vec::new();
        for figure in of_class().filter(|figure| figure.is_limit()) {
            let (Some(peer), Some(ns), Some(bytes)) = (&figure.peer, figure.median_ns, size) else {
                continue;
            };
            rates.push(format!("{} {:.1}", peer.trim_start_matches("limit "), bytes as f64 / ns));
        }
        if !rates.is_empty() {
            parts.push(format!("{} GB/s", rates.join(", ")));
        }
        if !parts.is_empty() {
            text += &format!("  limits {class:>4}: {}\n", parts.join("; "));
        }
    }
    text
}

fn table(setting: &Setting, size: Option<usize>, figures: &[&Figure], terminal: bool) -> String {
    let with_sync = setting.what != Collective::Barrier;
    let shares: &[Limit] = match size {
        Some(_) if figures.iter().any(|figure| !figure.shares.is_empty()) => {
            share_limits(setting.what)
        }
        _ => &[],
    };
    let mut table = Table::new();
    table.load_style(if terminal { presets::UTF8_FULL_CONDENSED } else { presets::NOTHING });
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    let mut header = vec!["algorithm".to_owned()];
    header.extend(with_sync.then(|| "sync".to_owned()));
    header.extend(["class", "blocks", "median", "95 %", "p99", "transfers"].map(str::to_owned));
    header.extend(shares.iter().map(|limit| format!("of {limit}")));
    table.set_header(header);
    for figure in figures.iter().filter(|figure| !figure.is_limit()) {
        let mut row = vec![name(figure)];
        row.extend(with_sync.then(|| figure.sync.clone().unwrap_or_default()));
        row.extend([
            figure.c2c_class.map_or("-".to_owned(), |class| class.to_string()),
            figure.reps.to_string(),
        ]);
        row.extend(times(figure));
        row.push(figure.ratio_to_limit.map_or("-".to_owned(), significant));
        row.extend(shares.iter().map(|wanted| {
            let share = figure.shares.iter().find(|(limit, _)| limit == wanted);
            share.map_or("-".to_owned(), |(_, share)| format!("{share:.2}"))
        }));
        table.add_row(row);
    }
    let text_columns = if with_sync { 3 } else { 2 };
    for column in table.column_iter_mut().skip(text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

/// Median, interval and p99, all in the unit of the median, which is named once.
fn times(figure: &Figure) -> [String; 3] {
    let (Some(median), Some((low, high)), Some(p99)) =
        (figure.median_ns, figure.ci95_ns, figure.p99_ns)
    else {
        return ["-", "-", "-"].map(str::to_owned);
    };
    let (divisor, unit) = unit(median);
    let scaled = |ns: f64| significant(ns / divisor);
    [
        format!("{} {unit}", scaled(median)),
        format!("{}..{}", scaled(low), scaled(high)),
        scaled(p99),
    ]
}

/// The unit to write so many nanoseconds in, and its length in nanoseconds.
pub(crate) fn unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ..10e3 => (1.0, "ns"),
        ..10e6 => (1e3, "us"),
        _ => (1e6, "ms"),
    }
}

/// Three digits at least.
pub(crate) fn significant(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Who did it: a star marks what Consort chose itself.
fn name(figure: &Figure) -> String {
    if let Some(peer) = &figure.peer {
        return peer.clone();
    }
    let mut text = figure.algorithm.clone().unwrap_or("Consort's choice".to_owned());
    let params = figure.params.iter().flatten().map(|(name, value)| format!("{name}={value}"));
    let params: Vec<String> = params.collect();
    if !params.is_empty() {
        text += &format!("({})", params.join(","));
    }
    if figure.chosen {
        text += " *";
    }
    text
}

fn notes(setting: &Setting, figures: &[&Figure]) -> String {
    let mut text = String::from("\n");
    if figures.iter().any(|figure| figure.chosen) {
        text += "* is Consort's own choice. ";
    }
    text += "Transfers: the median in one-way transfers of a cache line.\n";
    if figures.iter().any(|figure| !figure.shares.is_empty()) {
        text += "Of a limit: the bandwidth reached, as a share of what one core alone could move.\n";
    }
    let mpi = |figure: &&&Figure| figure.fabric == "processes";
    if setting.mode == Mode::Latency && figures.iter().any(|figure| mpi(&figure)) {
        text += "MPI's figures are of calls in a row.\n";
    }
    let discarded = discarded(figures);
    if discarded > 0 {
        text += &format!(
            "{discarded} blocks were discarded, as the transfer before and after differed by over \
             20 %.\n"
        );
    }
    text
}

/// Each work counts once, though it may have a figure for each class.
fn discarded(figures: &[&Figure]) -> usize {
    let mut seen: Vec<(String, Option<usize>, Option<&String>)> = Vec::new();
    let mut total = 0;
    for figure in figures {
        let work = (name(figure), figure.bytes, figure.sync.as_ref());
        if !seen.contains(&work) {
            total += figure.discarded;
            seen.push(work);
        }
    }
    total
}
