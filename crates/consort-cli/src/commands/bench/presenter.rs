//! The options of all subcommands, and the output of their results.

use std::{cell::Cell, ops::Deref, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use consort::tune::Algorithms;
use consort_bench::{
    environment::Switches, harness::Figure, page::Page, workloads::critical_sections::Entry,
};
use consort_console::{
    args, interrupt, measurement::Measurement, output, report::Findings, results::Results,
};
use consort_report::{Document, Tone};
use serde::Serialize;
use serde_json::{Value, json};

use super::{compare::EarlierResults, text::name};
use crate::{figure_plots, section_plots};

/// The exit status if a row is slower than allowed.
const COMPARISON_FAILED: u8 = 3;

/// The least time of a measurement that is repeated because rows were undecided.
const SHORTEST_LONGER: Duration = Duration::from_secs(1);

/// How long to measure, and where the results go.
#[derive(clap::Args, Debug)]
pub(super) struct OutputOptions {
    /// Measure for at most this long
    #[arg(long, value_name = "SECONDS", default_value = "4", value_parser = args::seconds,
        allow_negative_numbers = true)]
    budget: Duration,
    #[command(flatten)]
    results: Results,
    /// Compare with an earlier run's --json
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// Exit with 3 if a row may be slower by more
    #[arg(long, value_name = "PERCENT", requires = "compare", value_parser = percent)]
    fail_if_slower: Option<f64>,
    /// Measure longer while rows are undecided
    #[arg(long, value_name = "SECONDS", requires = "compare", value_parser = args::seconds)]
    until_decided: Option<Duration>,
}

/// Reads a share in per cent.
///
/// # Errors
/// A sentence with the remedy.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches(['%', ' ']).parse().ok();
    let percent = percent.filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "use a number of per cent, as in 5 or 2.5".to_owned())
}

impl OutputOptions {
    /// Measures with at most `pes` PEs and shows the results, including those before an interrupt.
    /// `measure` returns why it may take longer than its budget. It is called again, with twice the
    /// budget, while a comparison asks for that.
    ///
    /// # Errors
    /// When `measure` fails, or a file cannot be read or written.
    pub(super) fn run(
        &self,
        pes: u32,
        measure: impl Fn(&Presenter<'_>) -> Result<String>,
    ) -> Result<ExitCode> {
        self.results.check()?;
        let old = self.compare.as_deref().map(EarlierResults::read).transpose()?;
        let measurement = Measurement::begin(pes, interrupt::stop_flag()?);
        let (mut budget, again) = (self.budget, Cell::new(false));
        let mut presenter = Presenter { options: self, measurement, old, budget, again };
        let mut measured = measure(&presenter);
        while measured.is_ok() && presenter.again.take() {
            presenter.budget = presenter.longer();
            budget += presenter.budget;
            measured = measure(&presenter);
        }
        let Presenter { measurement, old, .. } = presenter;
        let ended = match measured {
            Ok(why) => {
                output::overrun::warn_if_over(measurement.elapsed(), budget, &why);
                interrupt::ending(&measurement.stop)
            }
            Err(error) => interrupt::ending_with(error, &measurement.stop)?,
        };
        // The reason why a comparison failed comes after the results.
        match old.and_then(|old| old.failure.take()) {
            Some(why) => {
                output::print_error_line(&format!("error: {why}"));
                Ok(ExitCode::from(COMPARISON_FAILED))
            }
            None => Ok(ended),
        }
    }
}

/// Returns the default number of PEs: one for each usable core, but at least two.
pub(super) fn usual_pes() -> u32 {
    u32::try_from(Algorithms::here().cores().max(2)).unwrap_or(u32::MAX)
}

/// Shows the results of a measurement, next to those of an earlier run if one is named.
pub(super) struct Presenter<'c> {
    options: &'c OutputOptions,
    pub(super) measurement: Measurement,
    old: Option<EarlierResults>,
    /// The time to measure for.
    pub(super) budget: Duration,
    /// Whether nothing was shown, because a longer measurement may decide the comparison.
    again: Cell<bool>,
}

/// Returns the name of a line or a bar of a figure.
fn line(figure: &Figure) -> String {
    match (&figure.algorithm, &figure.peer) {
        (Some(algorithm), Some(peer)) => format!("{algorithm}, {peer}"),
        // A description instead of an algorithm, as of a region.
        (Some(words), None) if words.contains(' ') => words.clone(),
        _ => name(figure),
    }
}

impl Presenter<'_> {
    /// Returns the time of the next measurement, if this one decides too little.
    fn longer(&self) -> Duration {
        (2 * self.budget).max(SHORTEST_LONGER)
    }

    /// Shows figures of work during which PEs lost no core.
    pub(super) fn show(&self, figures: &[Figure], page: &Page) -> Result<()> {
        self.show_with_page(&Switches::default(), figures, page)
    }

    /// Shows figures of work during which PEs lost their cores this often.
    pub(super) fn show_with_page(
        &self,
        switches: &Switches,
        figures: &[Figure],
        page: &Page,
    ) -> Result<()> {
        let plots = |document: &mut Document| figure_plots::plots(document, figures, &line);
        self.show_rows(switches, figures, page, &plots)
    }

    /// Shows figures of locks and delegation.
    pub(super) fn show_entries(&self, entries: &[Entry], page: &Page) -> Result<()> {
        let plots = |document: &mut Document| section_plots::plots(document, entries);
        self.show_rows(&Switches::default(), entries, page, &plots)
    }

    fn show_rows<T: Serialize>(
        &self,
        switches: &Switches,
        objects: &[T],
        page: &Page,
        plots: &dyn Fn(&mut Document),
    ) -> Result<()> {
        let Self { options, measurement, old, budget, again } = self;
        let OutputOptions { results, fail_if_slower, until_decided, .. } = options;
        let Some(old) = old else {
            let findings = Findings { objects, rows: None, page, plots };
            return measurement.present(switches, results, &findings);
        };
        let mut objects =
            objects.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let is_busy = measurement.busy(switches).is_some();
        let compared = old.compared(&objects, measurement.machine(), is_busy);
        let has_time = |limit| measurement.elapsed() + self.longer() <= limit;
        if until_decided.is_some_and(has_time)
            && compared.is_undecided(*fail_if_slower)
            && !interrupt::is_set(&measurement.stop)
        {
            again.set(true);
            return Ok(());
        }
        for (object, partner) in objects.iter_mut().zip(&compared.partners) {
            object["compared"] = json!(partner);
        }
        let mut both = page.clone();
        compared.show(&mut both);
        compared.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let plots = |document: &mut Document| {
            document.note(compared.tone(), compared.summary.deref());
            compared.warnings.iter().for_each(|text| document.note(Tone::Warning, text.deref()));
            plots(document);
        };
        let findings = Findings { objects: &objects, rows: None, page: &both, plots: &plots };
        measurement.present(switches, results, &findings)?;
        if results.are_for_programs() {
            tracing::warn!("{}", compared.summary);
        }
        old.judge(&compared, *fail_if_slower, *budget);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_by_algorithm_and_peer() {
        let of = |algorithm: &str, peer: Option<&str>| {
            line(&Figure {
                algorithm: Some(algorithm.to_owned()),
                params: Some([("radix".to_owned(), 4)].into()),
                peer: peer.map(str::to_owned),
                ..Figure::default()
            })
        };
        assert_eq!(of("knomial", None), "knomial(radix=4)");
        assert_eq!(of("empty region, Pool::run", None), "empty region, Pool::run");
        assert_eq!(of("rounds, alone", Some("std")), "rounds, alone, std");
        assert_eq!(line(&Figure { peer: Some("mpi".to_owned()), ..Figure::default() }), "mpi");
    }
}
