//! Presents the results of all workloads, next to those of an earlier run if one is named.

use std::ops::Deref;

use anyhow::Result;
use consort_bench::{
    environment::Switches, harness::Figure, page::Page, workloads::critical_sections::Entry,
};
use consort_report::{Document, Tone};
use serde::Serialize;
use serde_json::{Value, json};

use super::{arguments::Bench, text::name};
use crate::plots::{figures, sections};
use consort_console::{measurement::Measurement, report::Findings};

/// What a line or a bar of a figure is called.
fn line(figure: &Figure) -> String {
    match (&figure.algorithm, &figure.peer) {
        (Some(algorithm), Some(peer)) => format!("{algorithm}, {peer}"),
        // Words rather than the name of an algorithm, whose parameters say what it does.
        (Some(words), None) if words.contains(' ') => words.clone(),
        _ => name(figure),
    }
}

impl Bench {
    /// Tells figures.
    pub(super) fn tell(
        &self,
        measurement: &Measurement,
        switches: &Switches,
        all: &[Figure],
        page: &Page,
    ) -> Result<()> {
        let plots = |document: &mut Document| figures::plots(document, all, &line);
        self.tell_rows((measurement, switches), all, page, &plots)
    }

    /// Tells figures of locks and delegation.
    pub(super) fn tell_entries(
        &self,
        measurement: &Measurement,
        entries: &[Entry],
        page: &Page,
    ) -> Result<()> {
        let plots = |document: &mut Document| sections::plots(document, entries);
        self.tell_rows((measurement, &Switches::default()), entries, page, &plots)
    }

    fn tell_rows<T: Serialize>(
        &self,
        (measurement, switches): (&Measurement, &Switches),
        objects: &[T],
        page: &Page,
        plots: &dyn Fn(&mut Document),
    ) -> Result<()> {
        let Some(old) = self.old.as_deref() else {
            let findings = Findings { objects, rows: None, page, plots };
            return measurement.tell(switches, &self.results, &findings);
        };
        let mut objects =
            objects.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let compared = old.compared(&objects, measurement.machine());
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
        measurement.tell(switches, &self.results, &findings)?;
        if self.results.are_for_programs() {
            tracing::warn!("{}", compared.summary);
        }
        old.judge(&compared, self.fail_if_slower);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_by_what_was_done_and_by_whom() {
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
