//! The context in every object of a result: machine, date, build, and disturbances.

use std::fmt;

use consort_machine::topology::Topology;
use serde::Serialize;

use super::{date, switches::Switches, watch::Watch};

/// The circumstances of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// The machine: processor, processors, quota.
    pub machine: String,
    /// The date and time of the start, in UTC.
    pub date: String,
    /// The version of the library.
    pub version: &'static str,
    /// The commit that it was built from, or `unknown`.
    pub commit: &'static str,
    /// The load before the start, averaged over a minute; null if the system does not report it.
    pub load: Option<f64>,
    /// The disturbances of the measurement, in one line; null on an idle machine.
    pub busy: Option<String>,
    /// Whether it was interrupted before its end.
    pub interrupted: bool,
}

impl Context {
    /// Returns the context of a measurement that begins now, by a build from `commit`.
    #[must_use]
    pub fn begin(watch: &Watch, commit: &'static str) -> Context {
        Context {
            machine: Topology::discover().machine_key(),
            date: date::now(),
            version: env!("CARGO_PKG_VERSION"),
            commit,
            load: watch.load(),
            busy: None,
            interrupted: false,
        }
    }

    /// Returns the context at the end.
    #[must_use]
    pub fn end(&self, watch: &Watch, switches: &Switches, interrupted: bool) -> Context {
        Context { busy: watch.busy(switches), interrupted, ..self.clone() }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, date, version, commit, load, .. } = self;
        write!(f, "{machine}; consort {version} ({commit}), {date}")?;
        load.map_or(Ok(()), |load| write!(f, ", load {load:.1}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_prints_as_one_line_or_object() {
        let watch = Watch::begin(1);
        let begun = Context { load: Some(0.25), ..Context::begin(&watch, "0123456789ab") };
        let ended = begun.end(&watch, &Switches::default(), true);
        let line = begun.to_string();
        assert!(line.contains("(0123456789ab), 20") && line.ends_with("Z, load 0.2"), "{line}");
        assert!(!line.contains('\n') && begun.machine.contains("cpu"), "{line}");
        let json = serde_json::to_value(&ended).unwrap();
        let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let expected = ["busy", "commit", "date", "interrupted", "load", "machine", "version"];
        assert_eq!(keys, expected);
        assert_eq!((&json["interrupted"], &json["load"]), (&true.into(), &0.25.into()));
    }
}
