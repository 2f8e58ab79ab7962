//! Environment variables of the user: the one place that decides whether a variable is set.
//!
//! A shell script unsets a variable for one command by `NAME= command`, so an empty value, or one
//! of blanks alone, counts as unset.

use std::{
    env,
    ffi::{OsStr, OsString},
};

/// Returns the value of an environment variable; `None` if it is unset, empty or blank.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !is_blank(value))
}

/// Whether a value counts as no value.
#[must_use]
pub fn is_blank(value: &OsStr) -> bool {
    value.as_encoded_bytes().trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_blank_values_count_as_unset() {
        for value in ["", " ", "\t\n "] {
            assert!(is_blank(OsStr::new(value)), "{value:?}");
        }
        for value in ["0", " no ", "\u{a0}"] {
            assert!(!is_blank(OsStr::new(value)), "{value:?}");
        }
    }

    #[test]
    fn variable_has_its_value_or_none() {
        assert_eq!(variable("PATH"), env::var_os("PATH"));
        assert_eq!(variable("CONSORT_VARIABLE_THAT_NOBODY_SETS"), None);
    }
}
