//! The destinations of a measurement's results: text for people, JSON and CSV for programs, and a
//! report with plots.
//!
//! An error in one of them does not prevent the others: errors are reported at the end.

use std::path::PathBuf;

use anyhow::{Context, Error, Result};
use serde::Serialize;
use serde_json::Value;

use crate::{
    args,
    output::{self, csv},
    refuse,
};

/// The requested files.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Results {
    /// Write JSON lines to FILE, or print them
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    pub json: Option<PathBuf>,
    /// Write the same as CSV to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    pub csv: Option<PathBuf>,
    /// Write a report with plots for a browser
    #[arg(long, value_name = "FILE.html", value_parser = args::writable_file())]
    pub report: Option<PathBuf>,
}

impl Results {
    /// Checks that no result would overwrite another.
    ///
    /// # Errors
    /// When two go to the same place.
    pub fn check(&self) -> Result<()> {
        let all = [("--json", &self.json), ("--csv", &self.csv), ("--report", &self.report)];
        for (index, (option, path)) in all.iter().enumerate() {
            for (other, its) in &all[..index] {
                if let (Some(path), true) = (path, path == its) {
                    let place = if path.as_os_str() == "-" {
                        "standard output".to_owned()
                    } else {
                        path.display().to_string()
                    };
                    refuse!("{other} and {option} both go to {place}: name a file for one of them");
                }
            }
        }
        Ok(())
    }

    /// Returns whether programs read the results, not a person.
    pub fn are_for_programs(&self) -> bool {
        self.json.is_some() || self.csv.is_some()
    }

    /// Writes the requested results. The text is printed unless a program gets the results. `rows`
    /// are the rows of CSV, if they are not the objects.
    ///
    /// # Errors
    /// When something could not be written, after everything else was written.
    pub fn write(
        &self,
        objects: &[impl Serialize],
        rows: Option<&[Value]>,
        text: impl FnOnce() -> Result<()>,
        report: impl FnOnce() -> String,
    ) -> Result<()> {
        let (mut is_printed, mut errors) = (false, Vec::new());
        let mut note = |written: Result<()>| match written {
            Ok(()) => is_printed = true,
            Err(error) => errors.push(error),
        };
        if let Some(path) = &self.json {
            note(output::write_json_lines(path, objects));
        }
        if let Some(path) = &self.csv {
            note(csv_of(objects, rows).and_then(|text| output::save(path, &text)));
        }
        if !is_printed {
            errors.extend(text().err());
        }
        if let Some(path) = &self.report {
            errors.extend(output::save(path, &report()).err());
        }
        last_of(errors)
    }
}

/// Prints all errors but the last, and returns the last.
fn last_of(mut errors: Vec<Error>) -> Result<()> {
    let last = errors.pop();
    for error in &errors {
        output::print_error_line(&format!("error: {error:#}"));
    }
    last.map_or(Ok(()), Err)
}

fn csv_of(objects: &[impl Serialize], rows: Option<&[Value]>) -> Result<String> {
    let own = || objects.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>();
    let own = if rows.is_none() { own().context("cannot write the result")? } else { Vec::new() };
    Ok(csv::text(rows.unwrap_or(&own)))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn named(json: Option<&Path>, csv: Option<&Path>, report: Option<&Path>) -> Results {
        let [json, csv, report] = [json, csv, report].map(|path| path.map(Path::to_owned));
        Results { json, csv, report }
    }

    #[test]
    fn failed_file_does_not_block_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone/file");
        let (json, page) = (folder.path().join("a.json"), folder.path().join("a.html"));
        let objects = [serde_json::json!({"a": 1})];
        let write = |results: &Results| {
            let mut has_text = false;
            let text = || {
                has_text = true;
                Ok(())
            };
            let written = results.write(&objects, None, text, || "<p>".to_owned());
            (written.map_err(|error| error.to_string()), has_text)
        };
        let (written, has_text) = write(&named(Some(&json), None, Some(&gone)));
        assert!(written.unwrap_err().contains("cannot write") && !has_text);
        assert_eq!(fs::read_to_string(&json).unwrap(), "{\"a\":1}\n");
        let (written, has_text) = write(&named(Some(&gone), None, Some(&page)));
        assert!(written.is_err() && has_text, "the text instead of the JSON");
        assert_eq!(fs::read_to_string(&page).unwrap(), "<p>");
        let (written, has_text) = write(&named(None, Some(&json), None));
        assert!(written.is_ok() && !has_text);
        assert_eq!(fs::read_to_string(&json).unwrap(), "a\n1\n");
        assert_eq!(write(&Results::default()), (Ok(()), true));
    }

    #[test]
    fn two_results_in_one_place_are_refused() {
        let (a, b, out) = (Path::new("a"), Path::new("b"), Path::new("-"));
        assert!(named(Some(a), Some(b), None).check().is_ok());
        assert!(named(Some(out), Some(a), Some(b)).check().is_ok());
        let both = named(Some(out), Some(out), None).check().unwrap_err().to_string();
        assert!(both.contains("--json and --csv both go to standard output"), "{both}");
        let both = named(Some(b), Some(a), Some(a)).check().unwrap_err().to_string();
        assert!(both.contains("--csv and --report both go to a"), "{both}");
    }
}
