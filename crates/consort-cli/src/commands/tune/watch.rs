//! What is seen while tuning, and what is saved meanwhile.
//!
//! On a terminal a bar shows how far it is and what is being measured; elsewhere a line now and
//! then does. Wisdom is saved every few seconds, so that whatever ends the process, little is
//! lost; a signal to stop ends the search in order, and a second one ends the process.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use consort::{Candidate, Query};
use consort_bench::asked::describe;
use consort_tuner::{Entry, Observer, Progress, Wisdom, WisdomError};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Saving takes a disk's time: not after every query.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// A line of progress, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The status of a process that is ended by an interrupt.
const INTERRUPTED: i32 = 130;

/// A flag that is set by an interrupt (Ctrl-C) or a request to terminate; a second one ends the
/// process.
///
/// # Errors
/// When the system refuses to pass signals on.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order the first signal finds the flag unset, and only sets it.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot handle interrupts")?;
    }
    Ok(flag)
}

/// Shows the progress of something with a known number of steps.
#[derive(Debug)]
pub(super) struct Meter {
    bar: Option<ProgressBar>,
    budget: Duration,
    started: Instant,
    spoke: Instant,
}

impl Meter {
    pub(super) fn new(budget: Duration) -> Self {
        let template = "{bar:24} {pos}/{len}, {elapsed} of {prefix}: {wide_msg}";
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(format!("{} s", budget.as_secs()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let now = Instant::now();
        Self { bar, budget, started: now, spoke: now }
    }

    /// `done` of `total` are done, and `what` is next.
    pub(super) fn show(&mut self, done: usize, total: usize, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            bar.set_message(what.to_owned());
        } else if self.spoke.elapsed() >= LINE_EVERY {
            self.spoke = Instant::now();
            let (elapsed, budget) = (self.started.elapsed().as_secs(), self.budget.as_secs());
            eprintln!("{done}/{total}, {elapsed} s of at most {budget} s: {what}");
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Watches a search.
#[derive(Debug)]
pub(super) struct Watch<'w> {
    pub(super) meter: &'w mut Meter,
    pub(super) path: PathBuf,
    pub(super) stop: &'w AtomicBool,
    saved: Instant,
    /// Why wisdom could not be saved; ends the search.
    pub(super) failure: Option<WisdomError>,
}

impl<'w> Watch<'w> {
    pub(super) fn new(meter: &'w mut Meter, path: &Path, stop: &'w AtomicBool) -> Self {
        Self { meter, path: path.to_owned(), stop, saved: Instant::now(), failure: None }
    }
}

impl Observer for Watch<'_> {
    fn measuring(&mut self, progress: &Progress, query: &Query, candidates: &[Candidate]) {
        let what = format!("{}, {} candidates", describe(query), candidates.len());
        self.meter.show(progress.done_count, progress.total_count, &what);
    }

    fn won(&mut self, _: &Progress, _: &Entry, wisdom: &Wisdom) {
        if self.saved.elapsed() < SAVE_EVERY || self.failure.is_some() {
            return;
        }
        if let Err(error) = wisdom.save(&self.path) {
            self.failure = Some(error);
            // Relaxed: the flag carries nothing but itself.
            self.stop.store(true, Ordering::Relaxed);
        }
        self.saved = Instant::now();
    }
}
