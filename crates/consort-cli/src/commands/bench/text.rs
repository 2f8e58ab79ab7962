//! The tables for people: one for each size and class of the transfer, within 100 columns.

mod heading;

use consort::{sync_modes::SyncModes, tune::Candidate};
use consort_bench::{
    harness::{Communication, Figure, Pattern, RunSettings},
    limits::{Limit, MOST_BYTES},
    page::Page,
    units,
};
use consort_fabric::statistics::launches;
use consort_tuner::TransferClass;

use consort_console::output;
use heading::heading;

/// Returns the whole page.
pub(super) fn page(run: &RunSettings, figures: &[Figure]) -> Page {
    let mut page = Page::default();
    heading(&mut page, run);
    let (missing, shown): (Vec<&Figure>, Vec<&Figure>) =
        figures.iter().partition(|figure| figure.absent.is_some());
    let mut sizes: Vec<Option<usize>> = shown.iter().map(|figure| figure.bytes).collect();
    sizes.dedup();
    for (index, size) in sizes.iter().enumerate() {
        if sizes[..index].contains(size) {
            continue;
        }
        for class in [Some(TransferClass::Near), Some(TransferClass::Far), None] {
            // PEs that share cores have no class, so the limits of both classes are shown.
            let limit_here = |figure: &Figure| class.is_none() || figure.c2c_class == class;
            let of_size = || shown.iter().copied().filter(|figure| figure.bytes == *size);
            let limits: Vec<&Figure> =
                of_size().filter(|figure| figure.is_limit() && limit_here(figure)).collect();
            let timed: Vec<&Figure> = of_size()
                .filter(|figure| !figure.is_limit() && figure.c2c_class == class)
                .collect();
            if !timed.is_empty() {
                page.lines("\n");
                let title = title(run, *size, class, &timed, &limits);
                if !title.is_empty() {
                    page.paragraph(title);
                }
                table(&mut page, run, &timed);
                page.lines(strictest_over_loosest(&timed));
            }
        }
    }
    page.lines("\n");
    notes(&mut page, run, &shown);
    for figure in missing {
        let size = figure.bytes.map(|bytes| format!(" of {}", units::size(bytes as u64)));
        let sync = figure.sync.as_ref().filter(|_| figure.is_ours() && size.is_some());
        let sync = sync.map(|sync| format!(", {sync}"));
        let why = figure.absent.as_deref().unwrap_or_default();
        let what =
            format!("{}{}{}", name(figure), size.unwrap_or_default(), sync.unwrap_or_default());
        page.paragraph(format!("not measured: {what}: {why}"));
    }
    page
}

/// Returns the size, the class, and the machine's limits for these.
fn title(
    run: &RunSettings,
    size: Option<usize>,
    class: Option<TransferClass>,
    figures: &[&Figure],
    limits: &[&Figure],
) -> String {
    let mut transfers: Vec<f64> = figures.iter().filter_map(|figure| figure.c2c_ns).collect();
    let mut parts = Vec::new();
    parts.extend(size.map(|bytes| units::size(bytes as u64)));
    match class {
        Some(class) if transfers.is_empty() => parts.push(class.to_string()),
        Some(class) => {
            let transfer = consort_fabric::statistics::median(&mut transfers);
            parts.push(format!("{class}: transfer {}", output::time(transfer)));
        }
        // If each PE has its own core, only a peer in another process can have no class.
        None if run.cpus.is_some() && run.pes > 1 => {
            parts.push("no class: the transfer time changed during the run".to_owned());
        }
        None => {}
    }
    let rate = |limit: &&Figure| {
        let (peer, ns, bytes) = (limit.peer.as_ref()?, limit.median_ns?, limit.bytes?);
        let which = limit.c2c_class.filter(|_| class.is_none()).map(|class| format!("{class} "));
        let (which, name) = (which.unwrap_or_default(), peer.trim_start_matches("limit "));
        Some(format!("{which}{name} {:.1}", bytes as f64 / ns))
    };
    let rates: Vec<String> = limits.iter().filter_map(rate).collect();
    if !rates.is_empty() {
        parts.push(format!("{} GB/s", rates.join(", ")));
    }
    parts.join(", ")
}

fn table(page: &mut Page, run: &RunSettings, figures: &[&Figure]) {
    let with_sync = matches!(run.what, Communication::Collective(_)) && !run.what.is_barrier();
    let speed = speed(run);
    let bulk = figures.iter().any(|figure| !figure.shares.is_empty());
    let shares = if bulk { run.share_limits() } else { &[] };
    let mut header = vec!["algorithm"];
    header.extend(with_sync.then_some("sync"));
    header.extend(["blocks", "median", "± %", "p99"]);
    header.extend((!bulk).then_some("transfers"));
    header.extend(speed.map(|(unit, _)| unit));
    header.extend(shares.iter().map(|&limit| column(limit)));
    let numbers: Vec<usize> = (if with_sync { 2 } else { 1 }..header.len()).collect();
    let row = |figure: &&Figure| {
        // Allows breaking a cell between words, if the name has parts.
        let name = name(figure);
        let is_ours = figure.peer.is_none();
        let mut row = vec![if is_ours { name.replace(',', ", ") } else { name }];
        row.extend(with_sync.then(|| figure.sync.clone().unwrap_or_default()));
        row.push(figure.reps.to_string());
        row.push(figure.median_ns.map_or("-".to_owned(), output::time));
        row.push(figure.precision().map_or("-".to_owned(), units::precision));
        row.push(figure.p99_ns.map_or("-".to_owned(), output::time));
        row.extend((!bulk).then(|| figure.ratio_to_limit.map_or("-".to_owned(), output::ratio)));
        row.extend(speed.map(|(_, amount)| {
            let bytes = figure.bytes.unwrap_or(0);
            figure.median_ns.map_or("-".to_owned(), |ns| format!("{:.2}", amount(run, bytes) / ns))
        }));
        row.extend(shares.iter().map(|wanted| {
            let share = figure.shares.iter().find(|(limit, _)| limit == wanted);
            share.map_or("-".to_owned(), |(_, share)| format!("{share:.2}"))
        }));
        row
    };
    page.table(header, figures.iter().map(row).collect(), numbers);
}

/// The amount of a call on blocks of this many bytes.
type Amount = fn(&RunSettings, usize) -> f64;

/// Returns the unit of a call's speed, and the number of these units if a call took a nanosecond.
fn speed(run: &RunSettings) -> Option<(&'static str, Amount)> {
    match run.what {
        Communication::PointToPoint(Pattern::PutRate) => {
            Some(("messages/us", |run, _| 1000.0 * run.what.bytes_moved(run.pes, 1)))
        }
        Communication::PointToPoint(Pattern::PutBandwidth) => {
            Some(("GB/s", |run, bytes| run.what.bytes_moved(run.pes, bytes)))
        }
        _ => None,
    }
}

/// Returns the ratio of the strictest modes to the loosest, each with its fastest algorithm, if
/// both are measured.
fn strictest_over_loosest(figures: &[&Figure]) -> String {
    let fastest = |sync: SyncModes| {
        let wanted = sync.to_string();
        let in_mode = |figure: &&&Figure| figure.is_ours() && figure.sync.as_ref() == Some(&wanted);
        figures.iter().filter(in_mode).filter_map(|figure| figure.median_ns).min_by(f64::total_cmp)
    };
    let both = fastest(SyncModes::STRICT).zip(fastest(SyncModes::LOOSE));
    let ratio = both.map(|(strict_ns, loose_ns)| output::ratio(strict_ns / loose_ns));
    ratio.map_or(String::new(), |ratio| {
        format!("The strictest modes take {ratio} as long as the loosest.\n")
    })
}

/// Returns a short name for a column.
fn column(limit: Limit) -> &'static str {
    match limit {
        Limit::Copy => "of copy",
        Limit::Pull => "of pull",
        Limit::Combine => "combine",
        Limit::PullCombine => "pull-c.",
    }
}

/// Returns the name of a figure: the peer or the algorithm. A star marks Consort's choice.
pub(super) fn name(figure: &Figure) -> String {
    if let Some(peer) = &figure.peer {
        return peer.clone();
    }
    let algorithm = figure.algorithm.clone().unwrap_or("Consort's choice".to_owned());
    let parameters = figure.params.iter().flatten();
    let named = Candidate::new(&algorithm);
    let candidate = parameters.fold(named, |named, (name, value)| named.with(name, *value));
    let star = if figure.chosen { " *" } else { "" };
    format!("{candidate}{star}")
}

fn notes(page: &mut Page, run: &RunSettings, figures: &[&Figure]) {
    if figures.iter().any(|figure| figure.chosen) {
        page.paragraph("* marks Consort's choice.");
    }
    page.paragraph(format!(
        "± %: half the 95 % interval of the median, by a bootstrap over launches (seed {}) and, \
         of fewer than eight, Student's t.",
        launches::SEED
    ));
    if figures.iter().any(|figure| figure.shares.is_empty() && figure.ratio_to_limit.is_some()) {
        page.paragraph("Transfers: the median in one-way transfers of a cache line.");
    }
    if figures.iter().any(|figure| !figure.shares.is_empty()) {
        let names: Vec<&str> = run.share_limits().iter().map(|&limit| column(limit)).collect();
        page.paragraph(format!(
            "{}: the bandwidth reached, as a share of what one core alone reaches.",
            names.join(", ")
        ));
    }
    if figures.iter().any(|figure| figure.bytes.is_some_and(|bytes| bytes > MOST_BYTES)) {
        let most = units::size(MOST_BYTES as u64);
        page.paragraph(format!("The machine's limits for larger buffers are those for {most}."));
    }
    let is_threads = |one: &&Figure| one.fabric == "threads" && !one.is_ours();
    let mut libraries = figures.iter().filter(|one| !one.is_limit() && !one.is_program);
    if !run.what.is_barrier() && libraries.any(is_threads) {
        page.paragraph(
            "For libraries that only have barriers, a call is a barrier, loads of the other PEs' \
             data, and a barrier.",
        );
    }
    let of_collective = matches!(run.what, Communication::Collective(_));
    if of_collective && figures.iter().any(|figure| figure.is_program) {
        page.paragraph(
            "The figures of MPI and OpenMP are from programs in C: calls in a row on one buffer \
             that is not rewritten.",
        );
    }
    let discarded = discarded(figures);
    if discarded > 0 {
        page.paragraph(format!(
            "Discarded blocks: {discarded}, because the transfers before and after them differed \
             by over a fifth."
        ));
    }
}

/// Returns the number of discarded blocks. Each work counts once, although it may have a figure for
/// each class.
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

#[cfg(test)]
mod tests {
    use consort::{Waiting, launch::Fabric, tune::Collective};
    use consort_bench::harness::{Conditions, Mode};

    use super::*;

    pub(super) fn run() -> RunSettings {
        RunSettings {
            fabric: Fabric::Threads,
            what: Communication::Collective(Collective::Broadcast),
            pes: 2,
            mode: Mode::Latency,
            conditions: Conditions::default(),
            symmetric: false,
            waiting: Waiting::SpinYield,
            usable_cores: 2,
            cpus: Some(vec![0, 1]),
        }
    }

    fn figure(class: TransferClass) -> Figure {
        Figure {
            algorithm: Some("pipelined".to_owned()),
            params: Some([("chunk_bytes".to_owned(), 1024), ("radix".to_owned(), 4)].into()),
            sync: Some("mine/all".to_owned()),
            bytes: Some(1 << 20),
            median_ns: Some(123_456.0),
            ci95_ns: Some((120_000.0, 125_000.0)),
            p99_ns: Some(9_000_000.0),
            reps: 1234,
            c2c_ns: Some(150.0),
            c2c_class: Some(class),
            ratio_to_limit: Some(823.0),
            shares: vec![(Limit::Pull, 0.87)],
            discarded: 7,
            ..run().blank()
        }
    }

    #[test]
    fn each_class_has_a_table_within_the_columns() {
        let limit = Figure {
            peer: Some("limit pull".to_owned()),
            shares: Vec::new(),
            ratio_to_limit: None,
            discarded: 0,
            ..figure(TransferClass::Far)
        };
        let absent = Figure {
            peer: Some("mpirun".to_owned()),
            absent: Some("no mpirun here: install one".to_owned()),
            ..run().blank()
        };
        let figures = [figure(TransferClass::Near), figure(TransferClass::Far), limit, absent];
        let page = output::page(&page(&run(), &figures));
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        assert!(page.contains("1 MiB, near: transfer 150 ns\n"), "{page}");
        assert!(page.contains("1 MiB, far: transfer 150 ns, pull 8.5 GB/s\n"), "{page}");
        assert_eq!(page.matches("pipelined(chunk_bytes=1024, mine/all").count(), 2, "{page}");
        assert!(page.contains("123 us") && page.contains("0.87"), "{page}");
        assert!(page.contains("Discarded blocks: 7,"), "each work counts once: {page}");
        assert!(page.contains("not measured: mpirun: no mpirun here"), "{page}");
    }

    #[test]
    fn peer_notes_appear_only_with_peers() {
        let peer = |name: &str, is_program| Figure {
            peer: Some(name.to_owned()),
            is_program,
            ..figure(TransferClass::Far)
        };
        let (loads, in_a_row) = ("loads of the other PEs' data", "from programs in C");
        for (one, says_loads, says_in_a_row) in [
            (figure(TransferClass::Far), false, false),
            (peer("limit pull", false), false, false),
            (peer("hurdles", false), true, false),
            (peer("libgomp active, gcc 12.2.0", true), false, true),
        ] {
            let text = unwrapped(&output::page(&page(&run(), &[one])));
            let says = (text.contains(loads), text.contains(in_a_row));
            assert_eq!(says, (says_loads, says_in_a_row), "{text}");
        }
        let barriers =
            RunSettings { what: Communication::Collective(Collective::Barrier), ..run() };
        let text = unwrapped(&output::page(&page(&barriers, &[peer("hurdles", false)])));
        assert!(!text.contains(loads), "{text}");
    }

    /// Returns the text with each line end replaced by a space.
    fn unwrapped(text: &str) -> String {
        text.replace('\n', " ")
    }

    #[test]
    fn the_strictest_modes_are_compared_with_the_loosest() {
        let in_mode = |sync: &str, ns| Figure {
            sync: Some(sync.to_owned()),
            median_ns: Some(ns),
            ..figure(TransferClass::Far)
        };
        let [loose, strict] = [in_mode("loose", 100.0), in_mode("strict", 420.0)];
        let [slower, mine] = [in_mode("loose", 150.0), in_mode("mine", 50.0)];
        let line = strictest_over_loosest(&[&slower, &loose, &strict, &mine]);
        assert_eq!(line, "The strictest modes take 4.20x as long as the loosest.\n");
        assert_eq!(strictest_over_loosest(&[&loose, &mine]), "");
    }
}
