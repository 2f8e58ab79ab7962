//! A bar that shows the spent share of a budget, only on a terminal.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

const STEPS: u64 = 1000;
/// The interval between updates of a bar that shows the elapsed time.
const STEP: Duration = Duration::from_millis(100);

/// A bar on standard error, removed when it is dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Creates an empty bar with a name.
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {percent} %") {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        Self(bar)
    }

    /// Changes the name of the bar.
    pub fn rename(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }

    /// Runs a function that takes about `time`, and shows the elapsed share of it.
    pub fn during<T>(&self, time: Duration, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while is_done.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                    self.show(begun.elapsed().as_secs_f64() / time.as_secs_f64());
                }
            });
            let result = run();
            drop(done);
            result
        })
    }

    /// Shows this share of the whole.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of steps"
    )]
    pub fn show(&self, share: f64) {
        self.0.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_moves_while_time_goes_by() {
        let progress = Progress::new("measuring");
        let at = |time: Duration| {
            progress.during(time, || {
                thread::sleep(4 * STEP);
                progress.0.position()
            })
        };
        assert!((1..STEPS).contains(&at(1000 * STEP)));
        assert_eq!(at(STEP), STEPS);
        assert_eq!(at(Duration::ZERO), STEPS);
    }
}
