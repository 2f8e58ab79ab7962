//! Selects the candidates to simulate: the requested ones, completed with values that can serve.

use anyhow::Result;
use consort::tune::{Candidate, Collective};
use consort_collectives::{Parameter, PlanError, Setting, describe, names};
use consort_console::{refuse, usage};

/// The requested candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested<'a> {
    /// The algorithms, with parameters or without. None stands for all.
    pub(super) named: &'a [Candidate],
    /// Values for all algorithms that have the parameter.
    pub(super) values: &'a [Values],
    /// Whether to try all values that the tuner tries, for each parameter without a value here.
    pub(super) every_value: bool,
}

/// Values of a parameter. Each is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) parameter: String,
    pub(super) values: Vec<u64>,
}

/// The candidates that can be simulated, and those that cannot.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) able: Vec<Candidate>,
    pub(super) unable: Vec<PlanError>,
}

impl Requested<'_> {
    /// Returns whether no algorithm and no value is requested.
    pub(super) fn is_all(&self) -> bool {
        self.named.is_empty() && self.values.is_empty() && !self.every_value
    }
}

impl std::str::FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("invalid parameter values `{text}`: expected NAME=NUMBER, as in k=7 or k=2,7")
        };
        let (parameter, values) = text.split_once('=').ok_or_else(bad)?;
        let values: Vec<u64> =
            values.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
        Ok(Self { parameter: parameter.to_owned(), values })
    }
}

/// Parses an algorithm on the command line. Dashes in its name become underscores.
///
/// # Errors
/// A sentence that says what would be valid.
pub(super) fn named(text: &str) -> Result<Candidate, String> {
    let end = text.find('(').unwrap_or(text.len());
    let (name, parameters) = text.split_at(end);
    format!("{}{parameters}", name.replace('-', "_"))
        .parse()
        .map_err(|error: consort_fabric::BadCandidate| error.to_string())
}

/// Completes the requested candidates for a setting.
///
/// # Errors
/// When a name is unknown, or no candidate that was requested by name or by value can serve.
pub(super) fn candidates(
    collective: Collective,
    setting: &Setting,
    requested: Requested<'_>,
) -> Result<Candidates> {
    let all: Vec<Candidate> = names(collective).iter().map(|name| Candidate::new(name)).collect();
    let bases = if requested.named.is_empty() { &all } else { requested.named };
    let mut tried = Vec::new();
    for base in bases {
        tried.extend(
            completed(collective, base, setting, requested).map_err(usage::invalid_argument)?,
        );
    }
    for Values { parameter, values } in requested.values {
        check(&tried, parameter, values)?;
    }
    let mut found = Candidates::default();
    for (candidate, error) in tried {
        match error {
            None => found.able.push(candidate),
            Some(error) if requested.named.is_empty() => found.unable.push(error),
            Some(error) => return Err(usage::invalid_argument(error)),
        }
    }
    if found.able.is_empty() {
        let reasons: Vec<String> = found.unable.iter().map(ToString::to_string).collect();
        refuse!("no {collective} can be simulated here: {}", reasons.join("; "));
    }
    Ok(found)
}

/// Checks that some algorithm can serve with the values of a parameter.
fn check(tried: &[Tried], parameter: &str, values: &[u64]) -> Result<()> {
    let having = || tried.iter().filter(|(candidate, _)| candidate.parameter(parameter).is_some());
    if having().next().is_none() {
        let mut known: Vec<&str> = tried
            .iter()
            .flat_map(|(one, _)| one.parameters().iter().map(|(name, _)| name.as_str()))
            .collect();
        known.sort_unstable();
        known.dedup();
        let known = match known.is_empty() {
            true => "they have none".to_owned(),
            false => format!("expected one of {}", known.join(", ")),
        };
        refuse!("no algorithm here has a parameter `{parameter}`: {known}");
    }
    for &value in values {
        let with =
            || having().filter(|(candidate, _)| candidate.parameter(parameter) == Some(value));
        if with().all(|(_, error)| error.is_some())
            && let Some(error) = with().find_map(|(_, error)| error.clone())
        {
            return Err(usage::invalid_argument(error));
        }
    }
    Ok(())
}

/// A candidate, and the reason if it cannot serve.
type Tried = (Candidate, Option<PlanError>);

/// Returns a base with values for all parameters of its algorithm, as far as these can serve.
fn completed(
    collective: Collective,
    base: &Candidate,
    setting: &Setting,
    requested: Requested<'_>,
) -> Result<Vec<Tried>, PlanError> {
    let description = describe(collective, &base.algorithm)?;
    description.check_names(base)?;
    let mut starts = vec![base.clone()];
    let mut open = Vec::new();
    for parameter in description.parameters.iter().filter(|it| base.parameter(it.name).is_none()) {
        match requested.values.iter().rfind(|given| given.parameter == parameter.name) {
            Some(given) => starts = crossed(&starts, parameter.name, &given.values),
            None => open.push(parameter),
        }
    }
    let complete = |start: Candidate| -> Vec<Tried> {
        let mut all = vec![start];
        for parameter in &open {
            let values = worth_trying(parameter, setting.call.pes, requested.every_value);
            all = crossed(&all, parameter.name, &values);
        }
        let error = |one: &Candidate| consort_collectives::check(setting, one).err();
        let mut tried: Vec<Tried> = all.into_iter().map(|one| (one.clone(), error(&one))).collect();
        let one_serves = tried.iter().any(|(_, error)| error.is_none());
        if one_serves {
            tried.retain(|(_, error)| error.is_none());
        }
        if !(one_serves && requested.every_value) {
            tried.truncate(1);
        }
        tried
    };
    Ok(starts.into_iter().flat_map(complete).collect())
}

fn crossed(candidates: &[Candidate], parameter: &str, values: &[u64]) -> Vec<Candidate> {
    let with = |one: &Candidate| -> Vec<Candidate> {
        values.iter().map(|&value| one.clone().with(parameter, value)).collect()
    };
    candidates.iter().flat_map(with).collect()
}

/// Returns the values that the tuner tries. Unless `every_value`, the values that suit most
/// machines come first: for OC-BCAST the degree that Petrović (2015) found best on the SCC, for
/// other trees two branches.
fn worth_trying(parameter: &Parameter, pes: u32, every_value: bool) -> Vec<u64> {
    let first = match parameter.name {
        _ if every_value => None,
        "k" => Some(7.min(u64::from(pes) - 1).max(1)),
        "radix" => Some(2),
        _ => None,
    };
    let others = parameter.values.iter().copied().filter(|&value| Some(value) != first);
    first.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use consort::{sync_modes::SyncModes, tune::Query};
    use consort_fabric::{Capabilities, OperatorClass};

    use super::*;

    fn setting(pes: u32) -> Setting {
        let query = Query {
            collective: Collective::Broadcast,
            sync: SyncModes::MINE,
            pes,
            bytes: 10_000,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        let capabilities = Capabilities {
            exposes: false,
            buffered: false,
            ..Capabilities::with_memory(256, 8192, 8192)
        };
        Setting::of(&query, capabilities)
    }

    fn found(pes: u32, named: &[&str], values: &[&str], every_value: bool) -> Result<Candidates> {
        let named: Vec<Candidate> = named.iter().map(|text| super::named(text).unwrap()).collect();
        let values: Vec<Values> = values.iter().map(|text| text.parse().unwrap()).collect();
        let requested = Requested { named: &named, values: &values, every_value };
        candidates(Collective::Broadcast, &setting(pes), requested)
    }

    fn able(pes: u32, named: &[&str], values: &[&str]) -> Vec<String> {
        found(pes, named, values, false).unwrap().able.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_parameter_is_the_first_that_serves() {
        assert_eq!(able(48, &["oc-bcast"], &[]), ["oc_bcast(chunk_bytes=3072,k=7)"]);
        assert_eq!(able(4, &["oc_bcast"], &[]), ["oc_bcast(chunk_bytes=3072,k=3)"]);
        assert_eq!(able(4, &["knomial"], &[]), ["knomial(radix=2)"]);
        let given = ["oc_bcast(chunk_bytes=96)"];
        assert_eq!(able(48, &given, &["chunk_bytes=64"]), ["oc_bcast(chunk_bytes=96,k=7)"]);
    }

    #[test]
    fn each_value_gives_a_candidate_with_the_parameter() {
        let all = able(48, &["oc_bcast", "flat"], &["k=2,3", "chunk_bytes=96"]);
        let trees = ["oc_bcast(chunk_bytes=96,k=2)", "oc_bcast(chunk_bytes=96,k=3)"];
        assert_eq!(all, [trees[0], trees[1], "flat"]);
    }

    #[test]
    fn unable_candidates_are_reported() {
        let once = found(48, &[], &[], false).unwrap();
        assert!(once.able.len() >= 5, "{once:?}");
        let unable: Vec<String> = once.unable.iter().map(ToString::to_string).collect();
        assert!(unable.iter().any(|why| why.starts_with("direct cannot serve")), "{unable:?}");
        let every = found(48, &[], &[], true).unwrap();
        assert!(every.able.len() > once.able.len() + 3, "{every:?}");
        assert_eq!(every.unable.len(), once.unable.len(), "{every:?}");
    }

    #[test]
    fn refusal_states_the_valid_values() {
        let refusal = |pes, named: &[&str], values: &[&str]| {
            found(pes, named, values, false).unwrap_err().to_string()
        };
        assert!(refusal(48, &["ring"], &[]).contains("no algorithm `ring`: use direct, flat"));
        let parameter = refusal(48, &["oc-bcast"], &["radix=2"]);
        assert_eq!(
            parameter,
            "no algorithm here has a parameter `radix`: expected one of chunk_bytes, k"
        );
        assert!(refusal(48, &["flat"], &["k=2"]).ends_with("they have none"));
        assert_eq!(refusal(48, &["oc_bcast"], &["k=0"]), "oc_bcast needs k from 1 to 65535");
        assert!(refusal(48, &[], &["k=48"]).ends_with("k is 48, but 48 PEs allow at most 47"));
        assert!(refusal(48, &["oc_bcast"], &["k=2,48"]).ends_with("at most 47"));
        let chunk = refusal(48, &["oc_bcast"], &["chunk_bytes=4097"]);
        assert!(chunk.ends_with("two chunks of 4097 B do not fit the message buffer, 8192 B"));
        assert!(refusal(48, &["flat(radix=2)"], &[]).contains("flat has no parameter `radix`"));
        for bad in ["k", "k=", "=", "k=x", "k=-1", "k=2,"] {
            assert!(bad.parse::<Values>().unwrap_err().contains("k=7"), "{bad}");
        }
    }
}
