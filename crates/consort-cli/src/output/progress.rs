//! A bar that shows the spent share of a budget, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

const STEPS: u64 = 1000;

/// A bar on standard error, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// An empty bar with a name.
    pub(crate) fn new(name: &str) -> Self {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {percent} %") {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        Self(bar)
    }

    /// Changes the name of the bar.
    pub(crate) fn rename(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// Shows this share of the whole.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of steps"
    )]
    pub(crate) fn show(&self, share: f64) {
        self.0.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
