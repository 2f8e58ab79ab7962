//! `consort bench --compare OLD.json`: each row next to its counterpart from an earlier run.
//!
//! Rows correspond if they are of the same call by the same algorithm; Consort's choice is compared
//! with its earlier choice. The intervals determine the verdict: a row is slower only if its
//! interval is above the old one. Ratios are of times, or of operations per second the other way
//! round, so more than 1 is slower.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use consort_bench::{
    page::Page,
    units::{self, counted},
};
use consort_fabric::files;
use consort_report::Tone;
use serde::Serialize;
use serde_json::Value;

use consort_console::output;

/// The keys that identify the call of a row.
const IDENTITY: [&str; 16] = [
    "bench",
    "fabric",
    "pes",
    "team",
    "sync",
    "bytes",
    "mode",
    "arrival",
    "waiting",
    "peer",
    "c2c_class",
    "is_peer",
    "load",
    "threads",
    "increments",
    "between",
];

/// The results of an earlier run.
#[derive(Debug, Default)]
pub(super) struct EarlierResults {
    path: PathBuf,
    rows: Vec<Row>,
    machines: BTreeSet<String>,
    versions: BTreeSet<String>,
    was_busy: bool,
    /// Why a check of the comparison failed.
    pub(super) failure: RefCell<Option<String>>,
}

/// The identity of a row, and its measurement.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    identity: Vec<Value>,
    /// The algorithm with its parameters.
    algorithm: String,
    is_chosen: bool,
    placement: Value,
    /// The transfer of a line between the cores at that time.
    c2c_ns: Option<f64>,
    measure: Option<MedianInterval>,
}

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MedianInterval {
    value: f64,
    interval: Option<(f64, f64)>,
    /// Whether it counts operations per second, where more is better.
    is_rate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Faster,
    Slower,
    Same,
    /// One of them has no interval.
    Unknown,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

/// The earlier counterpart of a row, for programs.
#[derive(Debug, Serialize)]
pub(super) struct EarlierRow {
    old: f64,
    old_ci95: Option<(f64, f64)>,
    old_algorithm: String,
    ratio: f64,
    verdict: Verdict,
}

/// A comparison of all rows.
pub(super) struct Comparison {
    /// The counterpart of each row, if there is one.
    pub(super) partners: Vec<Option<EarlierRow>>,
    pub(super) warnings: Vec<String>,
    /// The numbers of the verdicts, in a line.
    pub(super) summary: String,
    /// The numbers of rows with each verdict, in that order.
    counts: [usize; 4],
    name: String,
    lines: Vec<Vec<String>>,
    without: Vec<String>,
}

impl MedianInterval {
    fn of(row: &Value) -> Option<Self> {
        let of = |value: &str, interval: &str, is_rate| {
            let ends = row[interval].as_array().filter(|ends| ends.len() == 2);
            let interval = ends.and_then(|ends| ends[0].as_f64().zip(ends[1].as_f64()));
            Some(Self { value: row[value].as_f64()?, interval, is_rate })
        };
        of("mops", "ci95_mops", true).or_else(|| of("median_ns", "ci95_ns", false))
    }

    fn text(&self) -> String {
        if self.is_rate { format!("{:.2} Mops/s", self.value) } else { units::time(self.value) }
    }

    /// Returns this time as a multiple of the other's.
    fn ratio(&self, old: &Self) -> f64 {
        if self.is_rate { old.value / self.value } else { self.value / old.value }
    }

    fn verdict(&self, old: &Self) -> Verdict {
        let Some((new, old)) = self.interval.zip(old.interval) else { return Verdict::Unknown };
        let (is_above, is_below) = (new.0 > old.1, new.1 < old.0);
        match (is_above, is_below, self.is_rate) {
            (true, _, false) | (_, true, true) => Verdict::Slower,
            (_, true, false) | (true, _, true) => Verdict::Faster,
            _ => Verdict::Same,
        }
    }
}

impl Row {
    fn of(row: &Value) -> Self {
        let algorithm = row["algorithm"].as_str().unwrap_or_default();
        let parameters = row["params"].as_object().into_iter().flatten();
        let parameters: Vec<String> =
            parameters.map(|(name, value)| format!("{name}={value}")).collect();
        let parameters = match &parameters[..] {
            [] => String::new(),
            some => format!("({})", some.join(",")),
        };
        Self {
            identity: IDENTITY.map(|key| row[key].clone()).into(),
            algorithm: format!("{algorithm}{parameters}"),
            is_chosen: row["chosen"].as_bool().unwrap_or(false),
            placement: row["placement"].clone(),
            c2c_ns: row["c2c_ns"].as_f64(),
            measure: MedianInterval::of(row),
        }
    }

    /// Returns whether it corresponds to an earlier row.
    fn is_of(&self, old: &Self) -> bool {
        let both_chosen = self.is_chosen && old.is_chosen;
        self.identity == old.identity && (both_chosen || self.algorithm == old.algorithm)
    }

    /// Returns the transfer times of this row and a later one, if they differ.
    fn other_transfer(&self, later: &Self) -> Option<(f64, f64)> {
        const MOST: f64 = 1.2;
        let (then, now) = self.c2c_ns.zip(later.c2c_ns)?;
        (then.max(now) > MOST * then.min(now)).then_some((then, now))
    }

    /// Returns a description of the row's call.
    fn name(&self) -> String {
        let at = |key: &str| {
            let index = IDENTITY.iter().position(|one| *one == key);
            index.map_or(&Value::Null, |index| &self.identity[index])
        };
        let text = |key: &str| at(key).as_str().unwrap_or_default();
        let number = |key: &str| at(key).as_u64();
        let mut words = text("bench").to_owned();
        words += &number("bytes").map_or(String::new(), |it| format!(" of {}", units::size(it)));
        let counts = [("pes", "PE"), ("threads", "thread")];
        let counts = counts.into_iter().filter_map(|(key, noun)| Some((number(key)?, noun)));
        let mut more: Vec<String> = counts.map(|(count, noun)| counted(count, noun)).collect();
        let plain =
            [("fabric", "threads"), ("sync", "strict"), ("load", "full"), ("c2c_class", "")];
        more.extend(
            plain
                .into_iter()
                .filter(|(key, usual)| !text(key).is_empty() && text(key) != *usual)
                .map(|(key, _)| text(key).to_owned()),
        );
        let peer = text("peer");
        let by = if peer.is_empty() { &self.algorithm } else { peer };
        let star = if self.is_chosen { " *" } else { "" };
        format!("{words}, {}: {by}{star}", more.join(", "))
    }
}

impl EarlierResults {
    /// Reads the results of an earlier run.
    ///
    /// # Errors
    /// When the file cannot be read, or one of its lines is not a result.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = files::read_text(path).with_context(|| format!("cannot read {shown}"))?;
        let mut old = Self { path: path.to_owned(), ..Self::default() };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = index + 1;
            old.add(line).with_context(|| format!("{shown}, line {number}"))?;
        }
        ensure!(!old.rows.is_empty(), "{shown} has no result of `consort bench --json`");
        Ok(old)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let row: Value = serde_json::from_str(line).map_err(|error| match error.is_eof() {
            true => anyhow!("it ends after {} characters, within an object", error.column()),
            false => anyhow!("no JSON: {error}"),
        })?;
        let context = &row["context"];
        let version = context["version"].as_str().unwrap_or_default();
        let of = if version.is_empty() {
            "not a result of `consort bench --json`".to_owned()
        } else if version == env!("CARGO_PKG_VERSION") {
            "a result of a command other than `consort bench`".to_owned()
        } else {
            format!("of consort {version}, whose results differ from those of this version")
        };
        ensure!(row.is_object() && !version.is_empty(), "{of}");
        for key in ["bench", "median_ns"] {
            ensure!(row.get(key).is_some(), "{of}: it has no `{key}`");
        }
        let median = &row["median_ns"];
        ensure!(
            median.is_null() || median.as_f64().is_some_and(|ns| ns > 0.0),
            "`median_ns` is {median}, which is not a time"
        );
        self.machines.insert(context["machine"].as_str().unwrap_or_default().to_owned());
        self.versions.insert(version.to_owned());
        self.was_busy |= context["busy"].is_string();
        let row = Row::of(&row);
        // Of several corresponding results, the last one counts.
        self.rows.retain(|other| !row.is_of(other));
        self.rows.push(row);
        Ok(())
    }

    /// Compares new rows with the earlier ones.
    pub(super) fn compared(&self, objects: &[Value], machine: &str) -> Comparison {
        let mut compared = Comparison {
            partners: Vec::new(),
            warnings: self.warnings(machine),
            summary: String::new(),
            counts: [0; 4],
            name: self.path.display().to_string(),
            lines: Vec::new(),
            without: Vec::new(),
        };
        let (mut matched, mut counts) = (vec![false; self.rows.len()], [0_usize; 4]);
        let (mut is_placed_otherwise, mut other_transfer) = (false, None);
        for object in objects {
            let row = Row::of(object);
            let Some(new) = row.measure else {
                compared.partners.push(None);
                continue;
            };
            let at = self.rows.iter().position(|old| row.is_of(old));
            let partner = at.and_then(|at| Some((at, &self.rows[at], self.rows[at].measure?)));
            let Some((at, old_row, old)) = partner else {
                compared.without.push(format!("new alone: {}", row.name()));
                compared.partners.push(None);
                continue;
            };
            matched[at] = true;
            is_placed_otherwise |= row.placement != old_row.placement;
            other_transfer = other_transfer.or(old_row.other_transfer(&row));
            let (ratio, verdict) = (new.ratio(&old), new.verdict(&old));
            counts[verdict as usize] += 1;
            let was = match old_row.algorithm == row.algorithm {
                true => String::new(),
                false => format!(" (was {})", old_row.algorithm),
            };
            compared.lines.push(vec![
                row.name() + &was,
                old.text(),
                new.text(),
                output::ratio(ratio),
                verdict.name().to_owned(),
            ]);
            compared.partners.push(Some(EarlierRow {
                old: old.value,
                old_ci95: old.interval,
                old_algorithm: old_row.algorithm.clone(),
                ratio,
                verdict,
            }));
        }
        let left = self
            .rows
            .iter()
            .zip(matched)
            .filter(|(row, matched)| !matched && row.measure.is_some());
        compared.without.extend(left.map(|(row, _)| format!("old alone: {}", row.name())));
        if is_placed_otherwise {
            compared.warnings.push(format!("{}: PEs were placed differently then", compared.name));
        }
        compared.warnings.extend(other_transfer.map(|(then, now)| {
            let ([then, now], name) = ([then, now].map(units::time), &compared.name);
            format!(
                "{name}: a transfer of a cache line took {then} then and {now} now, and the times \
                 of small calls depend on it"
            )
        }));
        let [faster, slower, same, unknown] = counts;
        compared.counts = counts;
        compared.summary = format!(
            "Compared with {}: {slower} slower, {faster} faster, {same} the same, {unknown} \
             unknown, {} without a partner",
            compared.name,
            compared.without.len()
        );
        compared
    }

    /// Returns the reasons why a comparison with this machine and build is doubtful.
    fn warnings(&self, machine: &str) -> Vec<String> {
        let (name, version) = (self.path.display(), env!("CARGO_PKG_VERSION"));
        let others = self.machines.iter().filter(|one| *one != machine);
        let other_machines =
            others.map(|one| format!("{name} is of another machine: {one}; here: {machine}"));
        let others = self.versions.iter().filter(|one| *one != version);
        let other_versions =
            others.map(|one| format!("{name} is of consort {one}, and this is {version}"));
        let busy = self
            .was_busy
            .then(|| format!("{name}: the machine was busy then; its figures may be too high"));
        other_machines.chain(other_versions).chain(busy).collect()
    }

    /// Records whether a comparison fails a check for rows that are slower by this percentage.
    pub(super) fn judge(&self, compared: &Comparison, percent: Option<f64>) {
        let Some(percent) = percent else { return };
        let partners = || compared.partners.iter().flatten();
        let is_worse =
            |one: &&EarlierRow| one.verdict == Verdict::Slower && one.ratio > 1.0 + percent / 100.0;
        let worse = partners().filter(is_worse).count();
        let failure = match (partners().count(), worse) {
            (0, _) => Some("no row has a partner, so nothing was compared".to_owned()),
            (_, 0) => None,
            (all, worse) => {
                let rows = counted(worse as u64, "row");
                Some(format!("{rows} of {all} more than {percent} % slower"))
            }
        };
        self.failure.replace(failure.map(|why| format!("{}: {why}", compared.name)));
    }
}

impl Comparison {
    /// Returns the tone of the result.
    pub(super) fn tone(&self) -> Tone {
        match self.counts {
            [0, 0, 0, _] => Tone::Neutral,
            [_, 0, _, _] => Tone::Good,
            _ => Tone::Bad,
        }
    }

    /// Adds the comparison to a page.
    pub(super) fn show(&self, page: &mut Page) {
        page.lines("\n");
        page.paragraph(format!("Compared with {}, by the intervals of both", self.name));
        let header = ["what", "old", "new", "ratio", "verdict"];
        page.table(header, self.lines.clone(), [1, 2, 3]);
        self.without.iter().for_each(|line| page.paragraph(line.clone()));
        page.paragraph(self.summary.clone());
    }
}

#[cfg(test)]
mod tests;
