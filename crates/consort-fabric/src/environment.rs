//! The user's environment variables. Only this module decides whether a variable is set.
//!
//! A shell script unsets a variable for one command with `NAME= command`, so an empty or blank
//! value counts as unset.

use std::{
    env,
    ffi::{OsStr, OsString},
};

/// Returns the value of an environment variable; `None` if it is unset, empty or blank.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !is_blank(value))
}

/// Returns whether a value counts as unset.
#[must_use]
pub fn is_blank(value: &OsStr) -> bool {
    value.as_encoded_bytes().trim_ascii().is_empty()
}

/// The variables in which launchers other than `consort run` store the number of processes and the
/// rank: Open MPI; MPICH and Intel MPI; `torchrun`; Slurm.
const LAUNCHERS: [[&str; 2]; 4] = [
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    ["PMI_SIZE", "PMI_RANK"],
    ["WORLD_SIZE", "RANK"],
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"],
];

/// Returns how many processes another launcher has started, and the rank of this one, from the
/// values of the launcher's variables; `None` if no launcher has started this process.
#[must_use]
pub fn launched(value: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let number = |name: &str| value(name)?.trim().parse().ok();
    LAUNCHERS.into_iter().find_map(|[count, rank]| number(count).zip(number(rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launcher_says_count_and_rank() {
        for [count, rank] in LAUNCHERS {
            let set = |name: &str| {
                [(count, "3"), (rank, "1 ")]
                    .iter()
                    .find(|one| one.0 == name)
                    .map(|one| one.1.into())
            };
            assert_eq!(launched(set), Some((3, 1)));
            assert_eq!(launched(|name| set(name).filter(|_| name != rank)), None);
        }
    }

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
