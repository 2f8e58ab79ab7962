//! The origin of the numbers in a description.
//!
//! A number is published in the `source`, or where the comments say, unless the table `provenance`
//! names it. That table names assumptions, whose reason is in the comment before them, and numbers
//! that are fitted to figures.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml::{Spanned, de::DeTable, de::DeValue};

use super::reading::{Flaw, ensure};

/// The parameters that are used only if a simulation asks for fitted ones.
const USED_ON_REQUEST: [&str; 2] = ["overhead_ns", "interrupt.signal_ns"];

/// The origin of the numbers in a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The parameters, or tables of them, that no source gives or that a source gives for something
    /// similar.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// The parameters that were chosen to reproduce figures, with the ids of these figures, as in
    /// `T2.LINE_K7`.
    #[serde(default)]
    pub fitted: BTreeMap<String, Vec<String>>,
    /// The number of parameters in the description.
    #[serde(skip_deserializing)]
    pub counts: Counts,
}

/// Numbers of parameters. Each parameter counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Parameters that a source gives.
    pub published: usize,
    /// Parameters that are assumed.
    pub assumed: usize,
    /// Parameters that are fitted.
    pub fitted: usize,
}

impl Provenance {
    /// Checks that it names parameters of `document`, and counts them.
    pub(super) fn complete(mut self, document: &Spanned<DeTable<'_>>) -> Result<Self, Flaw> {
        let all = parameters(document.get_ref());
        let is_in = |parameter: &str, name: &str| {
            let rest = parameter.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for name in &self.assumed {
            ensure(
                all.iter().any(|parameter| is_in(parameter, name)),
                "provenance.assumed",
                format!("expected a parameter of this description, found {name}"),
            )?;
        }
        for (name, figures) in &self.fitted {
            ensure(
                all.contains(name),
                "provenance.fitted",
                format!("expected a parameter of this description, found {name}"),
            )?;
            ensure(
                !figures.is_empty() && figures.iter().all(|figure| figure.contains('.')),
                "provenance.fitted",
                format!("expected the figures that {name} is fitted to, as in \"T2.LINE_K7\""),
            )?;
        }
        for parameter in &all {
            let Counts { published, assumed, fitted } = &mut self.counts;
            if self.fitted.contains_key(parameter) {
                *fitted += 1;
            } else if self.assumed.iter().any(|name| is_in(parameter, name)) {
                *assumed += 1;
            } else {
                *published += 1;
            }
        }
        Ok(self)
    }

    /// Returns whether a parameter was fitted to the figure with this id. Unless `all_fitted` is
    /// set, only the parameters that every simulation uses count.
    pub fn is_fitted_to(&self, id: &str, all_fitted: bool) -> bool {
        self.fitted.iter().any(|(name, figures)| {
            let is_used = all_fitted || !USED_ON_REQUEST.contains(&name.as_str());
            is_used && figures.iter().any(|figure| figure == id)
        })
    }

    /// Returns a sentence with the numbers of parameters, the names of fitted ones, and the claims
    /// of the figures.
    pub fn in_words(&self) -> String {
        let Counts { published, assumed, fitted } = self.counts;
        let all = published + assumed + fitted;
        let name = |(name, figures): (&String, &Vec<String>)| {
            let claims = figures.iter().map(|figure| figure.split('.').next().unwrap_or(""));
            let claims: Vec<&str> = claims.collect::<BTreeSet<_>>().into_iter().collect();
            let claims = match &claims[..] {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} and {last}", first.join(", "))
                }
                _ => claims.concat(),
            };
            format!("{name} to {claims}")
        };
        let names: Vec<String> = self.fitted.iter().map(name).collect();
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        format!(
            "Of {all} parameters {published} are given by its source, {assumed} assumed and \
             {fitted} fitted{names}."
        )
    }
}

/// Returns the paths of the parameters of a description: keys, and indices of tables from 0. A row
/// of numbers is one parameter.
pub(super) fn parameters(document: &DeTable<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in document {
        add_parameters(key.get_ref(), value.get_ref(), &mut all);
    }
    all
}

/// Adds the paths of the parameters at a value.
fn add_parameters(path: &str, value: &DeValue<'_>, all: &mut Vec<String>) {
    match value {
        DeValue::Table(table) => {
            for (key, value) in table {
                add_parameters(&format!("{path}.{}", key.get_ref()), value.get_ref(), all);
            }
        }
        DeValue::Array(values)
            if values.iter().any(|value| matches!(value.get_ref(), DeValue::Table(_))) =>
        {
            for (index, value) in values.iter().enumerate() {
                add_parameters(&format!("{path}.{index}"), value.get_ref(), all);
            }
        }
        _ => all.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Machine;

    /// Returns each comment of a description with the paths of the parameters and tables that
    /// follow it.
    fn commented(text: &str) -> Vec<(String, String)> {
        let (mut table, mut comment, mut all) = (String::new(), String::new(), Vec::new());
        let mut arrays: Vec<&str> = Vec::new();
        for line in text.lines() {
            if let Some(line) = line.strip_prefix('#') {
                comment += line;
                continue;
            }
            let path = if let Some(name) = line.strip_prefix("[[") {
                let name = name.trim_end_matches(']');
                table = format!("{name}.{}", arrays.iter().filter(|one| **one == name).count());
                arrays.push(name);
                Some(table.clone())
            } else if let Some(name) = line.strip_prefix('[') {
                name.trim_end_matches(']').clone_into(&mut table);
                Some(table.clone())
            } else {
                let key = line.split_once(" = ").map(|(key, _)| key);
                key.map(|key| [&table, key].map(str::to_owned).join(".").trim_matches('.').into())
            };
            let comment = std::mem::take(&mut comment);
            all.extend(path.filter(|_| !comment.is_empty()).map(|path| (path, comment)));
        }
        all
    }

    /// Returns whether one path equals the other, or leads to it.
    fn is_along(a: &str, b: &str) -> bool {
        let leads = |to: &str, from: &str| format!("{to}.").starts_with(&format!("{from}."));
        leads(a, b) || leads(b, a)
    }

    #[test]
    fn assumed_and_fitted_parameters_are_named() {
        for name in Machine::shipped() {
            let (_, text) = Machine::description(name).unwrap();
            let provenance = Machine::find(name).unwrap().provenance;
            let comments = commented(&text);
            assert!(!provenance.assumed.is_empty() && comments.len() > 5, "{name}");
            let is_of = |path: &str, name: &String| {
                let table = path.rsplit_once('.').map_or(path, |(table, _)| table);
                is_along(name, path) || path.contains('.') && is_along(name, table)
            };
            for (path, comment) in comments.iter().filter(|(path, _)| path != "title") {
                let mut all = provenance.assumed.iter().chain(provenance.fitted.keys());
                // A comment on a table with one assumed column says which column.
                if ["Assumption: ", "Assumption, "].iter().any(|word| comment.contains(word)) {
                    assert!(all.any(|name| is_along(name, path)), "{name}: {path} is not named");
                }
                if comment.contains("Fitted") {
                    let mut fitted = provenance.fitted.keys();
                    assert!(fitted.any(|name| is_of(path, name)), "{name}: {path} is not named");
                }
            }
            for fitted in provenance.fitted.keys() {
                let says = |(path, comment): &(String, String)| {
                    comment.contains("Fitted") && is_of(path, fitted)
                };
                assert!(comments.iter().any(says), "{name}: no comment mentions {fitted}");
            }
        }
    }

    #[test]
    fn each_parameter_counts_once() {
        let scc = Machine::find("scc").unwrap().provenance;
        assert_eq!((scc.counts.assumed, scc.counts.fitted), (2, 5), "{scc:?}");
        assert!(scc.counts.published > 15, "{scc:?}");
        let is_fitted = |id| [false, true].map(|all| scc.is_fitted_to(id, all));
        assert_eq!(is_fitted("T7.GETS_SPREAD"), [true; 2]);
        assert_eq!(is_fitted("T2.LINE_BINOMIAL"), [false, true], "by the overhead of a call");
        assert_eq!(is_fitted("T7.PUTS"), [false; 2]);
        assert!(scc.in_words().contains("2 assumed and 5 fitted"), "{}", scc.in_words());
    }

    #[test]
    fn unknown_parameter_names_are_refused() {
        let (_, text) = Machine::description("scc").unwrap();
        for (old, new, says) in [
            ("\"queued_reads\", \"queued_writes\"]", "\"queued\"]", "found queued"),
            ("\"overhead_ns\" =", "\"overhead\" =", "found overhead"),
            ("T7.GETS_SPREAD", "GETS_SPREAD", "the figures that serve_ns"),
        ] {
            assert_eq!(text.matches(old).count(), 1, "{old}");
            let error = Machine::parse("edited.toml", &text.replace(old, new)).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
