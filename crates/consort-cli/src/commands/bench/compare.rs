//! `consort bench --compare OLD.json`: each row next to its counterpart from an earlier run.
//!
//! Rows correspond if they have the same call and the same algorithm; Consort's choice is compared
//! with its earlier choice. A ratio is the new time over the old one, or the old rate over the new
//! one, so more than 1 is slower. The ratio and its interval determine the verdict. A row is
//! undecided unless its whole interval is on one side of 1 and its ratio outside of the band of
//! equal times, or the whole interval is within the band.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use consort_bench::{
    gain::{self, Median},
    page::Page,
    units::{self, counted},
};
use consort_fabric::{
    files,
    statistics::{Gain, Verdict},
};
use consort_report::Tone;
use serde::Serialize;
use serde_json::Value;

use consort_console::output;

/// Times that differ by less than this share are the same.
const BAND: f64 = 0.05;

/// An interval whose ends have a larger ratio is shown as `wide`.
const WIDE: f64 = 30.0;
/// The longest run that an error message suggests.
const LONGEST_SECONDS: f64 = 3600.0;

/// The keys that identify the call of a row.
const IDENTITY: [&str; 18] = [
    "bench",
    "situation",
    "busy_processes",
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
    measure: Option<Measure>,
    was_busy: bool,
    /// Whether it is of Consort itself, not of another library or the machine.
    is_ours: bool,
}

/// A time in nanoseconds, or millions of operations per second, where more is better.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measure {
    median: Median,
    is_rate: bool,
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same",
        Verdict::Undecided => "undecided",
    }
}

/// The earlier counterpart of a row, for programs.
#[derive(Debug, Serialize)]
pub(super) struct EarlierRow {
    old: f64,
    old_ci95: Option<(f64, f64)>,
    old_algorithm: String,
    ratio: f64,
    ratio_ci95: Option<(f64, f64)>,
    verdict: &'static str,
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
    /// The rows of Consort itself, now and then.
    ours: Vec<(Measure, Measure)>,
}

impl Measure {
    fn of(row: &Value) -> Option<Self> {
        let of = |value: &str, interval: &str, is_rate| {
            let median = row[value].as_f64()?;
            let ends = row[interval].as_array().filter(|ends| ends.len() == 2);
            let ci95 = ends.and_then(|ends| ends[0].as_f64().zip(ends[1].as_f64()));
            Some(Self { median: (median, ci95), is_rate })
        };
        of("mops", "ci95_mops", true).or_else(|| of("median_ns", "ci95_ns", false))
    }

    fn text(&self) -> String {
        let (value, _) = self.median;
        match self.is_rate {
            true if value < 0.01 => format!("{} ops/s", units::number(value * 1e6)),
            true => format!("{value:.2} Mops/s"),
            false => units::time(value),
        }
    }

    /// Returns how many times as fast this is as the other.
    fn gain(&self, old: &Self) -> Gain {
        match self.is_rate {
            true => gain::between(self.median, old.median),
            false => gain::between(old.median, self.median),
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
            measure: Measure::of(row),
            was_busy: row["context"]["busy"].is_string(),
            is_ours: row["peer"].is_null() && row["is_peer"] != true,
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
        let mut words = [text("bench"), text("situation")].join(" ").trim_end().to_owned();
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
        let row = Row::of(&row);
        // Of several corresponding results, the last one counts.
        self.rows.retain(|other| !row.is_of(other));
        self.rows.push(row);
        Ok(())
    }

    /// Compares new rows with the earlier ones. `is_busy`: the machine was busy during the new run.
    pub(super) fn compared(&self, objects: &[Value], machine: &str, is_busy: bool) -> Comparison {
        let mut compared = Comparison {
            partners: Vec::new(),
            warnings: self.warnings(machine),
            summary: String::new(),
            counts: [0; 4],
            name: self.path.display().to_string(),
            lines: Vec::new(),
            without: Vec::new(),
            ours: Vec::new(),
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
            let gain = new.gain(&old);
            let (ratio, verdict) = (1.0 / gain.ratio, gain.verdict(BAND));
            let interval = gain::interval(&gain).map(|(low, high)| (1.0 / high, 1.0 / low));
            counts[verdict as usize] += 1;
            compared.ours.extend(row.is_ours.then_some((new, old)));
            let was = match old_row.algorithm == row.algorithm {
                true => String::new(),
                false => format!(" (was {})", old_row.algorithm),
            };
            compared.lines.push(vec![
                row.name() + &was,
                old.text(),
                new.text(),
                output::ratio(ratio),
                interval.map_or(String::new(), interval_text),
                name(verdict).to_owned() + if is_busy || old_row.was_busy { ", busy" } else { "" },
            ]);
            compared.partners.push(Some(EarlierRow {
                old: old.median.0,
                old_ci95: old.median.1,
                old_algorithm: old_row.algorithm.clone(),
                ratio,
                ratio_ci95: interval,
                verdict: name(verdict),
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
        let [faster, slower, same, undecided] = counts;
        compared.counts = counts;
        compared.summary = format!(
            "Compared with {}: {slower} slower, {faster} faster, {same} the same, {undecided} \
             undecided, {} without a partner",
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
        let was_busy = self.rows.iter().any(|row| row.was_busy);
        let busy = was_busy
            .then(|| format!("{name}: the machine was busy then; its figures may be too high"));
        other_machines.chain(other_versions).chain(busy).collect()
    }

    /// Records whether a comparison of a run with this budget fails a check for rows of Consort that
    /// are slower by this percentage.
    pub(super) fn judge(&self, compared: &Comparison, percent: Option<f64>, budget: Duration) {
        let failure = percent.and_then(|percent| compared.failure(percent, budget));
        self.failure.replace(failure.map(|why| format!("{}: {why}", compared.name)));
    }
}

/// Formats an interval; one that says nothing is `wide`.
fn interval_text((low, high): (f64, f64)) -> String {
    match high / low > WIDE {
        true => "wide".to_owned(),
        false => format!("{} to {}", units::number(low), units::number(high)),
    }
}

/// Returns whether a gain is neither surely above a limit nor surely below it.
fn is_open(gain: &Gain, limit: f64) -> bool {
    gain.ci95.0 < limit && limit <= gain.ci95.1
}

/// Returns how many times as long the new run would have to take until its gain over the old one is
/// on one side of `limit`: intervals shrink with the root of the time. `None` if no time is enough,
/// because of the old interval, or if one of them has no interval.
fn times_longer(new: &Measure, old: &Measure, limit: f64) -> Option<f64> {
    let (median, _) = old.median;
    let exact = Measure { median: (median, Some((median, median))), ..*old };
    let squared = |ratio: f64| ratio.ln().powi(2);
    let to_end = |Gain { ratio, ci95: (low, high) }: Gain| {
        squared(if ratio < limit { high } else { low } / ratio)
    };
    let (gain, of_new) = (new.gain(old), to_end(new.gain(&exact)));
    let room = squared(gain.ratio / limit) - (to_end(gain) - of_new);
    (room > 0.0 && of_new.is_finite()).then(|| of_new / room)
}

impl Comparison {
    /// Returns whether a row of Consort is undecided: in a check, whether it is slower by this
    /// percentage.
    pub(super) fn is_undecided(&self, percent: Option<f64>) -> bool {
        self.ours.iter().map(|(new, old)| new.gain(old)).any(|gain| match percent {
            Some(percent) => is_open(&gain, limit(percent)),
            None => gain.verdict(BAND) == Verdict::Undecided,
        })
    }

    /// Returns why a check fails. If rows are undecided, the text says for how long to measure.
    fn failure(&self, percent: f64, budget: Duration) -> Option<String> {
        let limit = limit(percent);
        let gains = || self.ours.iter().map(|(new, old)| new.gain(old));
        let slower = gains().filter(|gain| gain.ci95.1 < limit).count();
        let open: Vec<_> =
            self.ours.iter().filter(|(new, old)| is_open(&new.gain(old), limit)).collect();
        let rows = |count: usize| format!("{count} of {}", counted(self.ours.len() as u64, "row"));
        let mut parts = Vec::new();
        if self.ours.is_empty() {
            parts.push("no row of Consort has a partner, so nothing was compared".to_owned());
        }
        if slower > 0 {
            parts.push(format!("{} more than {percent} % slower", rows(slower)));
        }
        if !open.is_empty() {
            let times: Option<Vec<f64>> =
                open.iter().map(|(new, old)| times_longer(new, old, limit)).collect();
            let most = times.map(|times| times.into_iter().fold(1.0, f64::max));
            let seconds = most.map(|most| (most * budget.as_secs_f64()).ceil());
            let advice = match seconds.filter(|&seconds| seconds <= LONGEST_SECONDS) {
                Some(seconds) => format!(
                    "measure for about {seconds} s, with --budget {seconds} or --until-decided {}",
                    2.0 * seconds
                ),
                None => "measure both for longer, with --budget".to_owned(),
            };
            let undecided = rows(open.len());
            parts.push(format!("{undecided} perhaps more than {percent} % slower: {advice}"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the tone of the result.
    pub(super) fn tone(&self) -> Tone {
        match self.counts {
            [0, 0, 0, 0] => Tone::Neutral,
            [_, 0, _, 0] => Tone::Good,
            [_, 0, ..] => Tone::Warning,
            _ => Tone::Bad,
        }
    }

    /// Adds the comparison to a page.
    pub(super) fn show(&self, page: &mut Page) {
        page.lines("\n");
        page.paragraph(format!("Compared with {}", self.name));
        let header = ["what", "old", "new", "ratio", "95 %", "verdict"];
        page.table(header, self.lines.clone(), [1, 2, 3, 4]);
        self.without.iter().for_each(|line| page.paragraph(line.clone()));
        page.paragraph(self.summary.clone());
        page.paragraph(format!(
            "same: the whole interval of the ratio is within {band:.0} %; faster, slower: it does \
             not include 1, and the ratio differs from 1 by more than {band:.0} %; undecided: \
             none of these.",
            band = 100.0 * BAND
        ));
    }
}

/// Returns the lowest gain that a percentage allows.
fn limit(percent: f64) -> f64 {
    1.0 / (1.0 + percent / 100.0)
}

#[cfg(test)]
mod tests;
