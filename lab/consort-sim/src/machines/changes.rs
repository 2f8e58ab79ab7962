//! A shipped machine with other values of some of its parameters, to see what they decide.

use toml::{Table, Value};

use super::{DescriptionError, Machine, READ, SHIPPED};

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
            let expected =
                || flawed(format!("expected a parameter and a value, found {parameter} = {value}"));
            let place = find(&mut document, parameter).ok_or_else(expected)?;
            *place = value.parse().map_err(|_| expected())?;
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
}
