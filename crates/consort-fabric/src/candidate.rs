//! A [`Candidate`]: a possible answer to a query about a collective.
//!
//! It is plain data. The tuner searches candidates without knowing any algorithm; the registry of
//! algorithms turns a candidate into a plan.

use std::{fmt, str::FromStr};

/// An algorithm and its parameters, by name: `knomial(radix=4)`. An algorithm composed of others
/// also names those: `two_level(flat,rabenseifner,knomial(radix=4))`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The algorithm's name in its collective's folder.
    pub algorithm: String,
    /// Sorted by name.
    parameters: Vec<(String, u64)>,
    /// The algorithms of its parts, if they are chosen.
    pub parts: Vec<Candidate>,
}

impl Candidate {
    /// Creates a candidate without parameters.
    #[must_use]
    pub fn new(algorithm: &str) -> Self {
        let (parameters, parts) = Default::default();
        Self { algorithm: algorithm.to_owned(), parameters, parts }
    }

    /// Sets a parameter. Units are part of its name.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: u64) -> Self {
        match self.find(parameter) {
            Ok(at) => self.parameters[at].1 = value,
            Err(at) => self.parameters.insert(at, (parameter.to_owned(), value)),
        }
        self
    }

    /// Adds a part.
    #[must_use]
    pub fn of(mut self, part: Self) -> Self {
        self.parts.push(part);
        self
    }

    /// Returns the value of a parameter, if it is given.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<u64> {
        self.find(name).ok().map(|at| self.parameters[at].1)
    }

    /// Returns the names and the values of the parameters, sorted by name.
    #[must_use]
    pub fn parameters(&self) -> &[(String, u64)] {
        &self.parameters
    }

    /// Returns the index of a parameter, or the index at which it would be.
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.parameters.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// Returns the algorithm with its parts, but without its own parameters.
    #[must_use]
    pub fn named(&self) -> String {
        self.written(self.parts.iter().map(Self::to_string))
    }

    /// Returns a short form for tables: `shared(chunk=64K)` for `shared(chunk_bytes=65536)`.
    #[must_use]
    pub fn brief(&self) -> String {
        let parameter = |&(ref name, value): &(String, u64)| match name.strip_suffix(BYTES) {
            Some(name) if value >= 1 << 20 && value % (1 << 20) == 0 => {
                format!("{name}={}M", value >> 20)
            }
            Some(name) if value >= 1 << 10 && value % (1 << 10) == 0 => {
                format!("{name}={}K", value >> 10)
            }
            Some(name) => format!("{name}={value}B"),
            None => format!("{name}={value}"),
        };
        let parts = self.parts.iter().map(Self::brief);
        self.written(self.parameters.iter().map(parameter).chain(parts))
    }

    fn written(&self, of: impl Iterator<Item = String>) -> String {
        let (name, of) = (&self.algorithm, of.collect::<Vec<_>>().join(","));
        if of.is_empty() { name.clone() } else { format!("{name}({of})") }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let parts = self.parts.iter().map(Self::to_string);
        f.pad(&self.written(parameters.chain(parts)))
    }
}

/// The error for a text that does not describe a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCandidate(String);

impl fmt::Display for BadCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "invalid candidate `{text}`: write NAME or NAME(PARAMETER=NUMBER,...), as in \
             knomial(radix=4), with all parts of a composed algorithm, as in \
             reduce_broadcast(flat,flat)"
        )
    }
}

impl std::error::Error for BadCandidate {}

impl FromStr for Candidate {
    type Err = BadCandidate;

    /// Reads a candidate in its full form or in the short form of tables: `chunk=16K` means
    /// `chunk_bytes=16384`. Spaces may follow commas.
    fn from_str(text: &str) -> Result<Self, BadCandidate> {
        let bad = || BadCandidate(text.to_owned());
        let word =
            |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let (name, rest) = text.split_once('(').map_or((text, None), |(n, r)| (n, Some(r)));
        if !word(name) {
            return Err(bad());
        }
        let mut candidate = Self::new(name);
        if let Some(rest) = rest {
            for item in items(rest.strip_suffix(')').ok_or_else(bad)?).map(str::trim_start) {
                let Some((parameter, value)) = item.split_once('=').filter(|_| !item.contains('('))
                else {
                    candidate = candidate.of(item.parse().map_err(|_| bad())?);
                    continue;
                };
                let value = number(value).filter(|_| word(parameter)).ok_or_else(bad)?;
                candidate = match value {
                    (value, true) if !parameter.ends_with(BYTES) => {
                        candidate.with(&format!("{parameter}{BYTES}"), value)
                    }
                    (value, _) => candidate.with(parameter, value),
                };
            }
        }
        // No algorithm has exactly one part: this is a parameter without a value.
        if candidate.parts.len() == 1 { Err(bad()) } else { Ok(candidate) }
    }
}

/// The unit of sizes, with which the names of their parameters end.
const BYTES: &str = "_bytes";

/// Parses a number; also returns whether it has a unit of bytes.
fn number(text: &str) -> Option<(u64, bool)> {
    let units = [("B", 0), ("K", 10), ("M", 20)];
    let unit = units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)));
    let Some((text, power)) = unit else { return Some((text.parse().ok()?, false)) };
    Some((text.parse::<u64>().ok()?.checked_mul(1 << power)?, true))
}

/// Splits a text at commas, except those in parentheses.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_read_back_from_its_text() {
        let candidate = Candidate::new("pipelined").with("radix", 2).with("chunk_bytes", 4096);
        assert_eq!(candidate.to_string(), "pipelined(chunk_bytes=4096,radix=2)");
        assert_eq!(candidate.to_string().parse(), Ok(candidate));
        assert_eq!("flat".parse(), Ok(Candidate::new("flat")));
        let [one, other] = ["flat", "knomial"].map(Candidate::new);
        let nested = Candidate::new("two_level").of(one).of(other.with("radix", 4)).with("x", 1);
        assert_eq!(nested.to_string(), "two_level(x=1,flat,knomial(radix=4))");
        assert_eq!(nested.to_string().parse(), Ok(nested));
        for bad in [
            "",
            "flat(",
            "flat()",
            "flat(radix)",
            "flat(a(b)",
            "flat(radix=x)",
            "flat(chunk=K)",
            "flat(chunk=1k)",
            "flat(chunk=18446744073709551615K)",
            "flat(=1)",
            "a b",
            "a(,b)",
        ] {
            assert!(bad.parse::<Candidate>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn parameters_are_sorted_and_the_last_value_counts() {
        let candidate = Candidate::new("pipelined").with("radix", 2).with("chunk_bytes", 4096);
        let candidate = candidate.with("radix", 4);
        let parameters = [("chunk_bytes".to_owned(), 4096), ("radix".to_owned(), 4)];
        assert_eq!(candidate.parameters(), parameters);
        assert_eq!((candidate.parameter("radix"), candidate.parameter("k")), (Some(4), None));
    }

    #[test]
    fn a_brief_candidate_is_read_back_too() {
        for (text, brief) in [
            ("flat", "flat"),
            ("pipelined(chunk_bytes=4096,radix=2)", "pipelined(chunk=4K,radix=2)"),
            ("direct(block_bytes=1048576)", "direct(block=1M)"),
            ("chain(chunk_bytes=7056)", "chain(chunk=7056B)"),
            ("two_level(flat,shared(chunk_bytes=65536))", "two_level(flat,shared(chunk=64K))"),
        ] {
            let candidate: Candidate = text.parse().unwrap();
            assert_eq!((candidate.to_string(), candidate.brief()), (text.into(), brief.into()));
            assert_eq!(brief.parse(), Ok(candidate));
        }
        assert_eq!(
            "shared(chunk_bytes=16K)".parse(),
            "shared(chunk_bytes=16384)".parse::<Candidate>()
        );
    }
}
