//! A shipped machine with other values of some of its parameters, to show their effect.

use toml::{Table, Value, de::DeTable};

use super::{DescriptionError, HEAD_KEYS, Machine, READ, SHIPPED, provenance::parameters};

impl Machine {
    /// Returns a shipped machine with other values of some of its parameters. A parameter is named
    /// as in the table `provenance`, as in `cache.2.foreign`, and its value is in TOML.
    ///
    /// # Errors
    /// When the machine is not shipped, it has no such parameter, or it cannot have such a value.
    pub fn changed(name: &str, changes: &[(&str, &str)]) -> Result<Self, DescriptionError> {
        let (file, text) = Self::description(name)?;
        let flawed = |message| DescriptionError::Flawed { file: file.clone(), line: 1, message };
        let mut document: Table =
            text.parse().map_err(|error: toml::de::Error| flawed(error.message().to_owned()))?;
        for (parameter, value) in changes {
            let place = find(&mut document, parameter).ok_or_else(|| {
                let known = known(&text, parameter).join(", ");
                flawed(format!("unknown parameter `{parameter}`: use one of {known}"))
            })?;
            *place = value.parse().map_err(|_| {
                flawed(format!("invalid value `{value}` of {parameter}: use a value in TOML"))
            })?;
        }
        Self::parse(&file, &document.to_string())
    }

    /// Makes [`Machine::find`] return this machine in place of the shipped one of its name, in this
    /// process. Returns whether it does: the name must be that of a shipped machine that nothing
    /// has read yet.
    pub fn replace_shipped(self) -> bool {
        let index = SHIPPED.iter().position(|(name, _)| *name == self.name);
        index.is_some_and(|index| READ[index].set(self).is_ok())
    }
}

/// Returns the place of a parameter in a description.
fn find<'d>(document: &'d mut Table, parameter: &str) -> Option<&'d mut Value> {
    let mut keys = parameter.split('.');
    let first = document.get_mut(keys.next()?)?;
    let place = keys.try_fold(first, |value, key| match value {
        Value::Table(table) => table.get_mut(key),
        Value::Array(values) => values.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })?;
    (!place.is_table()).then_some(place)
}

/// Returns the parameters of a description. If a name leads to a table, only those of the table.
fn known(text: &str, name: &str) -> Vec<String> {
    let mut all = DeTable::parse(text).map_or_else(|_| Vec::new(), |it| parameters(it.get_ref()));
    let is_of_head = |one: &String| HEAD_KEYS.iter().any(|key| one.split('.').next() == Some(key));
    all.retain(|one| !is_of_head(one));
    let name = format!("{name}.");
    let mut tables = name.match_indices('.').rev().map(|(dot, _)| &name[..=dot]);
    let table = tables.find(|table| all.iter().any(|one| one.starts_with(table)));
    let table = table.unwrap_or_default();
    all.retain(|one| one.starts_with(table));
    all
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    #[test]
    fn a_changed_machine_has_the_given_values() {
        let changes = [("cache.2.foreign", "true"), ("hub_ns", "5"), ("memory.gbps", "9.5")];
        let changed = Machine::changed("barcelona-x8", &changes).unwrap();
        let Kind::Coherent(coherent) = &changed.kind else { panic!("{changed:?}") };
        assert!(coherent.caches[2].foreign && coherent.hub_ns == Some(5.0), "{coherent:?}");
        assert_eq!(coherent.memory.gbps, 9.5);
        let shipped = Machine::find("barcelona-x8").unwrap();
        assert!(shipped != changed && !changed.replace_shipped(), "it has been read");
    }

    /// No source gives this time, so anybody may try another one.
    #[test]
    fn time_of_a_call_can_be_set_on_every_cluster() {
        let is_cluster =
            |name: &&str| matches!(Machine::find(name).unwrap().kind, Kind::Cluster(_));
        let clusters: Vec<&str> = Machine::shipped().filter(is_cluster).collect();
        assert!(clusters.len() >= 5, "{clusters:?}");
        for name in clusters {
            let Kind::Cluster(changed) = Machine::changed(name, &[("call_ns", "5")]).unwrap().kind
            else {
                panic!("{name} is a cluster")
            };
            assert_eq!(changed.call_ns, 5.0, "{name}");
        }
    }

    #[test]
    fn unknown_parameters_and_values_are_refused() {
        for (name, parameter, value) in [
            ("scc", "no_such_ns", "3"),
            ("scc", "interrupt", "3"),
            ("scc", "serve_ns.0", "3"),
            ("barcelona-x8", "cache.9.foreign", "true"),
            ("scc", "serve_ns", "three"),
            ("scc", "serve_ns", "-3"),
            ("scc", "serve_ns", "\"3\""),
        ] {
            let error = Machine::changed(name, &[(parameter, value)]);
            assert!(error.is_err(), "{name}: {parameter} = {value}");
        }
        assert!(Machine::changed("sccc", &[]).is_err());
    }

    #[test]
    fn error_names_known_parameters() {
        let error = |parameter| Machine::changed("scc", &[(parameter, "3")]).unwrap_err();
        let all = error("nosuch").to_string();
        assert!(all.contains("unknown parameter `nosuch`: use one of "), "{all}");
        assert!(all.contains(" serve_ns") && all.contains(" interrupt.signal_ns"), "{all}");
        assert!(!all.contains("provenance") && !all.contains("title"), "{all}");
        for parameter in ["interrupt", "interrupt.nosuch", "interrupt.signal_ns.0"] {
            let of_table = error(parameter).to_string();
            assert!(of_table.contains(" interrupt.signal_ns"), "{of_table}");
            assert!(!of_table.contains("serve_ns"), "{of_table}");
        }
        let value = Machine::changed("scc", &[("serve_ns", "three")]).unwrap_err().to_string();
        assert!(value.contains("invalid value `three` of serve_ns"), "{value}");
    }
}
