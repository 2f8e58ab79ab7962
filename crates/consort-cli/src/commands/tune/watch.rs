//! Shows the progress of tuning, and saves the wisdom in the meantime.
//!
//! On a terminal, a bar shows the progress and the current measurement; elsewhere, a line is
//! printed from time to time. Wisdom is saved every few seconds, so that little is lost if the
//! process is killed. A first signal ends the search in an orderly way, and a second signal ends
//! the process.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use consort::tune::{Candidate, Query};
use consort_tuner::{Entry, Observer, Progress, Wisdom, WisdomError};
use indicatif::{ProgressBar, ProgressStyle};

use consort_console::output::{self, overrun::seconds};

/// The interval between saves, because saving waits for the disk.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// The interval at which a bar updates the elapsed time.
const TICK: Duration = Duration::from_millis(200);
/// The interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the progress of work with a known number of steps.
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
            let bar = ProgressBar::new(0).with_prefix(format!("{} s", budget.as_secs()));
            match ProgressStyle::with_template(template) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let now = Instant::now();
        Self { bar, budget, started: now, spoke: now }
    }

    /// Shows that `done` of `total` steps are complete, and that `what` is next. There is no bar
    /// before the first call, because a warning would break it.
    pub(super) fn show(&mut self, done: usize, total: usize, what: &str) {
        if let Some(bar) = &self.bar {
            if bar.length() == Some(0) {
                bar.enable_steady_tick(TICK);
            }
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            bar.set_message(what.to_owned());
        } else if self.spoke.elapsed() >= LINE_EVERY {
            self.spoke = Instant::now();
            let (elapsed, budget) = (self.started.elapsed().as_secs(), self.budget.as_secs());
            output::print_error_line(&format!(
                "{done}/{total}, {elapsed} s of at most {budget} s: {what}"
            ));
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The observer of a search, which shows progress and saves wisdom.
#[derive(Debug)]
pub(super) struct Watch<'w> {
    pub(super) meter: &'w mut Meter,
    pub(super) path: PathBuf,
    pub(super) stop: &'w AtomicBool,
    /// The queries that were tuned.
    pub(super) won: BTreeSet<Query>,
    saved: Instant,
    /// The reason why wisdom could not be saved, which ends the search.
    pub(super) failure: Option<WisdomError>,
}

impl<'w> Watch<'w> {
    pub(super) fn new(meter: &'w mut Meter, path: &Path, stop: &'w AtomicBool) -> Self {
        Self {
            meter,
            path: path.to_owned(),
            stop,
            won: BTreeSet::new(),
            saved: Instant::now(),
            failure: None,
        }
    }
}

impl Observer for Watch<'_> {
    fn measuring(&mut self, progress: &Progress, query: &Query, candidates: &[Candidate]) {
        let what = format!("{query}, {} candidates", candidates.len());
        self.meter.show(progress.done_count, progress.total_count, &what);
    }

    fn waiting(&mut self, progress: &Progress, left: Duration) {
        let what = format!("others use the cores: waiting, for at most {}", seconds(left));
        self.meter.show(progress.done_count, progress.total_count, &what);
    }

    fn entry_measured(&mut self, _: &Progress, entry: &Entry, wisdom: &Wisdom) {
        self.won.insert(entry.query);
        if self.saved.elapsed() < SAVE_EVERY || self.failure.is_some() {
            return;
        }
        if let Err(error) = wisdom.save(&self.path) {
            self.failure = Some(error);
            // Relaxed: the flag publishes no other data.
            self.stop.store(true, Ordering::Relaxed);
        }
        self.saved = Instant::now();
    }
}
