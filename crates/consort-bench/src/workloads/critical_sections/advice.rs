//! Which lock or scheme to use for a section of some length: measured, and why.

use std::{sync::atomic::AtomicBool, time::Duration};

use anyhow::{Context, Result};

use super::{
    block::{WINDOW, uncontended_ns},
    counter::Numbers,
    race::{Contended, Race, Results},
    row::{LOCKS, SCHEMES, Subject},
};
use crate::{
    page::Page,
    units::{counted, ratio},
};

/// The increments of the operation by which the time of one increment is first measured; fewer take
/// too little time compared with their lock.
const LEAST: usize = 101;
/// How often it is measured, then with as many as the section has by the last guess: an increment
/// takes longer where the data leaves a cache.
const GUESSES: usize = 3;
/// A row that made so much more than the default is worth naming.
const WORTH: f64 = 1.1;
/// The most operations of a thread over the fewest, of a row that is advised.
const UNFAIR: f64 = 4.0;

/// Returns the increments of a section that takes about this many nanoseconds here, at least one.
///
/// # Errors
/// When the system refuses a core.
pub fn increments_of(section_ns: usize) -> Result<usize> {
    let time_ns = |increments| {
        let samples = uncontended_ns::<std::sync::Mutex<Numbers>>(increments, WINDOW)?;
        // Other work on the core only adds to the time of a section.
        anyhow::Ok(samples.into_iter().fold(f64::INFINITY, f64::min))
    };
    let lock_ns = time_ns(1)?;
    let mut increments = LEAST;
    for _ in 0..GUESSES {
        let measured = increments.max(LEAST);
        let each_ns = (time_ns(measured)? - lock_ns).max(0.0) / (measured - 1) as f64;
        // What is too short to be measured counts as a picosecond.
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

/// Measures all locks and schemes with such a section, and shows the share that is done.
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
) -> Result<Results> {
    let threads = &[threads];
    Race { subject: Subject::Counter, threads, increments, between, budget, stop }.run(show)
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
            let default = SCHEMES[0].name.starts_with(short);
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

/// Adds to a page what to use, and why.
///
/// # Errors
/// When the default was not measured: an interrupt came before.
pub fn advise(page: &mut Page, results: &Results) -> Result<()> {
    let rate = |one: &&Contended| one.mops.median;
    let best_of = |ours: bool| {
        let those = results.contended.iter().filter(|one| one.is_peer != ours && is_fair(one));
        // An addition by the processor is not a section.
        let sections = those.filter(|one| !one.name.starts_with("fetch"));
        sections.max_by(|one, other| rate(one).total_cmp(&rate(other)))
    };
    let default = results.contended.iter().find(|one| one.name == LOCKS[0].name);
    let default = default.context("nothing was measured: it was interrupted")?;
    let best = best_of(true).unwrap_or(default);
    let gain = rate(&best) / rate(&default);
    // Beyond what chance does.
    let is_worth = gain > WORTH && best.mops.ci95.0 > default.mops.ci95.1;
    let chosen = if is_worth { best } else { default };
    page.paragraph(format!(
        "Use {}: {:.2} million sections a second with {}.",
        written(chosen.name),
        rate(&chosen),
        counted(chosen.threads as u64, "thread"),
    ));
    page.paragraph(if is_worth {
        format!("The default, Mutex<T>, makes less: this is {} of its rate.", ratio(gain))
    } else if best.name == default.name {
        "It is the default, and nothing else here makes more.".to_owned()
    } else {
        let (most, by) = (ratio(gain), written(best.name));
        format!("It is the default. The most, {by}, makes {most} of its rate: too little to tell.")
    });
    page.paragraph(if let Some(peer) = best_of(false) {
        let over = ratio(rate(&chosen) / rate(&peer));
        let (chosen, peer) = (written(chosen.name), peer.name);
        format!("{chosen} makes {over} of the rate of the best lock of another library, {peer}.")
    } else {
        "No lock of another library was fair.".to_owned()
    });
    if chosen.threads > results.cores {
        page.paragraph(format!(
            "The threads outnumber the {}: under locks of strict order all wait for one that does \
             not run, and a server may not run either.",
            counted(results.cores as u64, "core")
        ));
    }
    let unfair = results.contended.iter().filter(|one| !is_fair(one)).map(|one| one.name);
    let unfair: Vec<&str> = unfair.collect();
    if !unfair.is_empty() {
        page.paragraph(format!(
            "Left out, since one thread made over {UNFAIR} times the operations of another: {}.",
            unfair.join("; ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_section_has_more_increments() {
        assert_eq!(increments_of(0).unwrap(), 1);
        let (short, long) = (increments_of(1_000).unwrap(), increments_of(100_000).unwrap());
        assert!(short > 10 && long > 10 * short, "{short} {long}");
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
        ] {
            assert_eq!(written(name), text);
        }
    }
}
