//! The output of an application.

use std::{fs, process::ExitCode};

use anyhow::{Context, Result};

use crate::{
    measure::Measured,
    options::{Common, unwritten},
    timeline::{Shares, Timeline},
};

/// The report of PE 0 about the runs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    application: &'static str,
    /// The size and the layout.
    problem: String,
    /// The variant of the algorithm.
    variant: String,
    kernels: &'static str,
    pes: usize,
    seconds: Vec<f64>,
    median_seconds: f64,
    gflops: f64,
    shares: Option<Shares>,
    check: Option<String>,
    #[serde(skip)]
    timeline: Option<Timeline>,
}

/// Prints the report of an application, or its error, and returns the exit status.
#[must_use]
pub fn conclude(ended: Result<Option<Report>>, common: &Common) -> ExitCode {
    let printed = ended.and_then(|report| report.map_or(Ok(()), |report| report.print(common)));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the median of some times.
fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

impl Report {
    /// Returns the report of runs of `flops` operations each.
    #[must_use]
    pub fn new<R>(
        application: &'static str,
        (problem, variant): (String, String),
        (kernels, pes): (&'static str, usize),
        flops: f64,
        measured: Measured<R>,
    ) -> Self {
        let (shares, median_seconds) = (measured.shares(), median(&measured.seconds));
        Self {
            application,
            problem,
            variant,
            kernels,
            pes,
            median_seconds,
            gflops: flops / median_seconds / 1e9,
            seconds: measured.seconds,
            shares,
            check: None,
            timeline: measured.timeline,
        }
    }

    /// Adds the text of a successful check.
    #[must_use]
    pub fn checked(self, check: Option<String>) -> Self {
        Self { check, ..self }
    }

    /// Prints the report, and writes the picture if `common` asks for it.
    fn print(&self, common: &Common) -> Result<()> {
        if common.json {
            println!("{}", serde_json::to_string(self).context("the report in JSON")?);
        } else {
            print!("{}", self.text());
        }
        let (Some(file), Some(timeline)) = (&common.timeline, &self.timeline) else {
            return Ok(());
        };
        let title =
            format!("{} {}, {}, {} PEs", self.application, self.problem, self.variant, self.pes);
        fs::write(file, timeline.svg(&title)).with_context(|| unwritten(file))
    }

    fn text(&self) -> String {
        let Self { application, problem, variant, kernels, pes, .. } = self;
        let mut text =
            format!("{application} {problem}, {variant}\n{pes} PEs, kernels of {kernels}\n");
        let times: Vec<_> = self.seconds.iter().map(|time| format!("{time:.4}")).collect();
        text += &format!("time      {} s\n", times.join(" "));
        text += &format!("median    {:.4} s, {:.2} GF/s\n", self.median_seconds, self.gflops);
        if let Some(Shares { compute, communicate, wait }) = self.shares {
            let [compute, communicate, wait] = [compute, communicate, wait].map(|it| it * 100.0);
            text += &format!(
                "last run  {compute:.1}% compute, {communicate:.1}% communicate, {wait:.1}% wait\n"
            );
        }
        if let Some(check) = &self.check {
            text += &format!("check     {check}\n");
        }
        text + &self.timeline.as_ref().map_or_else(String::new, Timeline::text)
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_is_the_middle_time() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
