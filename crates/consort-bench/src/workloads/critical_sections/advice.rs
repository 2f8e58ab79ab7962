//! Recommends a lock or a scheme for a section of a given length, by measurements.

use std::{sync::atomic::AtomicBool, time::Duration};

use anyhow::{Context, Result};
use consort_fabric::statistics::{Gain, Verdict};
use consort_machine::topology::Topology;

use super::{
    block::{WINDOW, uncontended_ns},
    counter::Numbers,
    race::{Contended, Load, Race, Results},
    row::{DEFAULT_SERVER, LOCKS, Row, SCHEMES, Subject},
};
use crate::{
    page::Page,
    units::{counted, ratio},
};

/// The least increments of an operation that measures the time of one increment. With fewer, the
/// time of the lock would dominate.
const LEAST: usize = 101;
/// The windows in which a section is timed.
const WINDOWS: usize = 4;
/// The number of these measurements. Each uses the previous guess of the section's increments,
/// because an increment takes longer if the data does not fit a cache.
const GUESSES: usize = 3;
/// A row is recommended instead of the default only if it is at least this many times as fast.
const WORTH: f64 = 1.2;
/// The rounds for which there should be time: a gain needs at least ten.
const ROUNDS: u32 = 12;
/// The budget divided by the time for measuring the best row again.
const CONFIRMATION: u32 = 3;
/// The largest fairness of a row that is recommended: the most operations of a thread divided by
/// the fewest.
const UNFAIR: f64 = 4.0;

/// Returns the increments of a section that takes about this many nanoseconds here, at least one.
///
/// # Errors
/// When the system refuses a core.
pub fn increments_of(section_ns: usize) -> Result<usize> {
    let time_ns = |increments| {
        // Other work on the core only adds to the time of a section. It may last for a window.
        let mut least_ns = f64::INFINITY;
        for _ in 0..WINDOWS {
            let samples = uncontended_ns::<std::sync::Mutex<Numbers>>(increments, WINDOW)?;
            least_ns = samples.into_iter().fold(least_ns, f64::min);
        }
        anyhow::Ok(least_ns)
    };
    let lock_ns = time_ns(1)?;
    let mut increments = LEAST;
    for _ in 0..GUESSES {
        let measured = increments.max(LEAST);
        let each_ns = (time_ns(measured)? - lock_ns).max(0.0) / (measured - 1) as f64;
        // A time that is too short to be measured counts as a picosecond.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the fraction of the count does not matter"
        )]
        let guess = (section_ns as f64 / each_ns.max(1e-3)) as usize;
        increments = guess.max(1);
    }
    Ok(increments)
}

/// The measurements for a recommendation.
#[derive(Debug)]
pub struct Sections {
    /// The results of all rows.
    pub results: Results,
    /// Those of the default and the row that seemed best, measured again.
    confirmation: Option<Results>,
}

/// Measures the rows that may serve such a section and return its result, on the same cores. Then
/// measures the best row again, if it seems better than the default. Passes the completed share to
/// `show`.
///
/// # Errors
/// When the system refuses threads or cores.
pub fn measure(
    increments: usize,
    threads: usize,
    between: u64,
    budget: Duration,
    stop: &AtomicBool,
    show: impl Fn(f64),
) -> Result<Sections> {
    let confirming = budget / CONFIRMATION;
    let (subject, several, loads) = (Subject::Counter, &[threads], &[Load::Full(threads)]);
    let race = |budget| Race { subject, threads: several, increments, between, budget, stop };
    let rows = Subject::sections(threads, Topology::discover().usable_cores());
    let share = 1.0 / f64::from(CONFIRMATION);
    let results = race(budget - confirming).run_rows(&rows, loads, ROUNDS, |done| {
        show((1.0 - share) * done);
    })?;
    let best = best_of(&results, true).map(|best| best.name);
    let rival = rows.iter().find(|row| Some(row.name) == best && row.name != LOCKS[0].name);
    let seems_better = |rival: &&&'static Row| {
        let rival = results.contended.iter().find(|one| one.name == rival.name);
        rival.is_some_and(is_worth)
    };
    let confirmation = rival.filter(seems_better).map(|rival| {
        let show = |done| show(1.0 - share + share * done);
        race(confirming).run_rows(&[&LOCKS[0], rival], loads, ROUNDS, show)
    });
    Ok(Sections { results, confirmation: confirmation.transpose()? })
}

/// How a row is written in a program.
fn written(name: &str) -> String {
    let is_in = |rows: &[super::row::Row]| rows.iter().any(|row| row.name == name);
    let short = name.split(',').next().unwrap_or(name);
    let has_server = SCHEMES.iter().any(|row| row.name == name && row.has_server);
    match name {
        _ if name == LOCKS[0].name => "Mutex<T>".to_owned(),
        _ if name == SCHEMES[0].name => "Delegate<T>".to_owned(),
        _ if is_in(LOCKS) => format!("Mutex<T, {short}>"),
        _ => {
            let front = if has_server { "Server" } else { "Delegate" };
            let default = SCHEMES[0].name.starts_with(short) || short == DEFAULT_SERVER;
            let data = if default { "T".to_owned() } else { format!("T, {short}") };
            let how = match name.rsplit(", ").next() {
                Some("batch") => ", in batches",
                Some("detached") => ", detached",
                _ => "",
            };
            format!("{front}<{data}>{how}")
        }
    }
}

/// Whether no thread of a row was left far behind.
fn is_fair(one: &Contended) -> bool {
    one.fairness.as_ref().is_none_or(|fairness| fairness.median <= UNFAIR)
}

/// Whether a row is surely better than the default, and by enough.
fn is_worth(one: &Contended) -> bool {
    let is_enough = |gain: &Gain| gain.ratio >= WORTH && gain.verdict(0.0) == Verdict::Faster;
    one.gain.as_ref().is_some_and(is_enough)
}

/// Returns the row with the most sections, of this library or of others.
fn best_of(results: &Results, is_ours: bool) -> Option<&Contended> {
    let those = results.contended.iter().filter(|one| one.is_peer != is_ours && is_fair(one));
    those.max_by(|one, other| one.mops.median.total_cmp(&other.mops.median))
}

/// The row to recommend.
enum Choice<'r> {
    /// The default: no row is better by enough.
    Default,
    /// The default, but this row may be better.
    Undecided(&'r Contended),
    /// This row, which was better twice.
    Other(&'r Contended),
}

impl Choice<'_> {
    fn of(sections: &Sections) -> Choice<'_> {
        let Sections { results, confirmation } = sections;
        let best = best_of(results, true).filter(|best| best.name != LOCKS[0].name);
        let Some(best) = best else { return Choice::Default };
        let again = confirmation.iter().flat_map(|results| &results.contended);
        let is_confirmed = again.filter(|one| one.name == best.name).any(is_worth);
        // The row may be better if its interval reaches the threshold, or is unknown.
        let may_be = best.gain.is_none_or(|gain| gain.ci95.1 >= WORTH);
        match (is_worth(best) && is_confirmed, may_be) {
            (true, _) => Choice::Other(best),
            (false, true) => Choice::Undecided(best),
            (false, false) => Choice::Default,
        }
    }
}

/// Adds a recommendation and its reasons to a page. `busy` says what has disturbed the measurement.
///
/// # Errors
/// When the default was not measured: an interrupt came before.
pub fn advise(page: &mut Page, sections: &Sections, busy: Option<&str>) -> Result<()> {
    let results = &sections.results;
    let default = results.contended.iter().find(|one| one.name == LOCKS[0].name);
    let default = default.context("nothing was measured: it was interrupted")?;
    let choice = Choice::of(sections);
    let chosen = if let Choice::Other(best) = choice { best } else { default };
    let of_gain = |one: &Contended| match one.gain {
        Some(gain) => gain.to_string(),
        None => "too few rounds to tell".to_owned(),
    };
    let percent = 100.0 * (WORTH - 1.0);
    page.paragraph(match choice {
        Choice::Default => format!(
            "Use Mutex<T>, the default: nothing else that returns results is {percent:.0} % faster."
        ),
        Choice::Undecided(best) => format!(
            "Undecided: nothing is surely {percent:.0} % faster than Mutex<T>, the default, but {} \
             may be: {}. Measure for longer with --budget, or stay with the default.",
            written(best.name),
            of_gain(best)
        ),
        Choice::Other(best) => format!(
            "Use {}: {} of the rate of Mutex<T>, the default, in each of two measurements.",
            written(best.name),
            of_gain(best)
        ),
    });
    if let Some(busy) = busy {
        page.paragraph(format!(
            "The machine was busy: {busy}. An idle machine may give another answer."
        ));
    }
    let name = written(chosen.name);
    page.paragraph(format!(
        "{name} makes {:.2} million sections a second with {}.",
        chosen.mops.median,
        counted(chosen.threads as u64, "thread"),
    ));
    page.paragraph(if let Some(peer) = best_of(results, false) {
        let over = ratio(chosen.mops.median / peer.mops.median);
        format!("This is {over} of the rate of the best lock of another library, {}.", peer.name)
    } else {
        "No lock of another library was fair.".to_owned()
    });
    page.paragraph(if chosen.threads < results.cores {
        "Batches and detached sections return no results, so they were not measured."
    } else {
        "Batches and detached sections return no results, and servers other than Server<T> need a \
         core that the threads do not use, so these were not measured."
    });
    if chosen.threads > results.cores {
        page.paragraph(format!(
            "The threads outnumber the {}: under locks of strict order all wait for one that does \
             not run.",
            counted(results.cores as u64, "core")
        ));
    }
    let others = results.contended.iter().filter(|one| one.name != default.name);
    let unfair: Vec<&str> = others.filter(|one| !is_fair(one)).map(|one| one.name).collect();
    if !unfair.is_empty() {
        page.paragraph(format!(
            "Left out, because one thread made over {UNFAIR} times the operations of another: {}.",
            unfair.join("; ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use consort_fabric::statistics::Summary;

    use super::*;
    use crate::page::Part;

    #[test]
    fn a_longer_section_has_more_increments() {
        assert_eq!(increments_of(0).unwrap(), 1);
        let (short, long) = (increments_of(1_000).unwrap(), increments_of(100_000).unwrap());
        assert!(short > 10 && long > 10 * short, "{short} {long}");
    }

    fn results(rows: &[(&'static str, Gain)]) -> Results {
        let contended = |&(name, gain): &(&'static str, Gain)| Contended {
            name,
            is_peer: false,
            threads: 2,
            is_pinned: true,
            mops: Summary::of(&[10.0 * gain.ratio]),
            gain: Some(gain),
            ratio: None,
            fairness: None,
            full: None,
            low: None,
        };
        Results {
            subject: Subject::Counter,
            cores: 2,
            increments: 1,
            between: 50,
            length: WINDOW,
            uncontended: Vec::new(),
            contended: rows.iter().map(contended).collect(),
        }
    }

    /// Returns an advice about `Clh`, with this gain, and this one when it is measured again.
    fn advice(gain: Gain, again: Option<Gain>, busy: Option<&str>) -> Vec<String> {
        let default = (LOCKS[0].name, Gain { ratio: 1.0, ci95: (1.0, 1.0) });
        let both = |gain| results(&[default, ("Clh", gain)]);
        let sections = Sections { results: both(gain), confirmation: again.map(both) };
        let mut page = Page::default();
        advise(&mut page, &sections, busy).unwrap();
        let text = |part: &Part| match part {
            Part::Paragraph(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        page.parts().iter().map(text).collect()
    }

    #[test]
    fn another_row_must_be_surely_better_in_two_measurements() {
        let of = |ratio, low, high| Gain { ratio, ci95: (low, high) };
        let first = |gain, again| advice(gain, again, None).remove(0);
        let (clear, wide) = (of(1.5, 1.3, 1.7), of(1.5, 0.9, 2.5));
        assert!(first(clear, Some(clear)).starts_with("Use Mutex<T, Clh>: 1.50x ("));
        for (gain, again) in [(clear, None), (clear, Some(wide)), (wide, Some(clear))] {
            let text = first(gain, again);
            assert!(text.starts_with("Undecided: ") && text.contains("Mutex<T, Clh>"), "{text}");
        }
        let little = of(1.15, 1.1, 1.19);
        assert!(first(little, Some(little)).starts_with("Use Mutex<T>, the default"));
    }

    #[test]
    fn busy_stands_next_to_the_advice() {
        let clear = Gain { ratio: 1.5, ci95: (1.3, 1.7) };
        let text = advice(clear, Some(clear), Some("load 3"));
        assert!(text[1].starts_with("The machine was busy: load 3."), "{text:?}");
    }

    #[test]
    fn rows_are_written_as_types() {
        for (name, text) in [
            ("Handoff, default", "Mutex<T>"),
            ("Clh", "Mutex<T, Clh>"),
            ("Locked, default", "Delegate<T>"),
            ("CcSynch", "Delegate<T, CcSynch>"),
            ("ShmServer, backoff", "Server<T, ShmServer>"),
            ("Locked, batch", "Delegate<T>, in batches"),
            ("MpServer, detached", "Server<T, MpServer>, detached"),
            ("FallbackServer", "Server<T>"),
        ] {
            assert_eq!(written(name), text);
        }
    }
}
