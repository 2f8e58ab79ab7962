//! Settings without effect for processes that are children of this command.

use std::ffi::{OsStr, OsString};

use consort_fabric::environment::{self, is_blank, variable};

use consort_console::args::PES_PER_PROCESS;

/// Variables that only apply to an MPI's processes, and the values that match the behaviour here.
const OF_MPI: [(&str, &str); 3] =
    [(PES_PER_PROCESS, "1"), ("CONSORT_PLACEMENT", "blocks"), ("CONSORT_SHARING", "machine")];
/// The variable for the number of PEs of a program that was not launched.
const PES: &str = "CONSORT_PES";
/// Warns of all settings without effect for `pes` processes, in these variables and the
/// environment.
pub(super) fn warn(pes: u32, given: &[(OsString, OsString)]) {
    let given = |name: &str| {
        let is_it = |(known, _): &&(OsString, OsString)| known == OsStr::new(name);
        let value = given.iter().rfind(is_it).map(|(_, value)| value.clone());
        let value = value.or_else(|| variable(name)).filter(|value| !is_blank(value))?;
        Some(value.to_string_lossy().trim().to_owned())
    };
    for line in lines(pes, given) {
        tracing::warn!("{line}");
    }
}

fn lines(pes: u32, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let of_mpi = OF_MPI.into_iter().filter_map(|(name, usual)| {
        let value = variable(name).filter(|value| value != usual)?;
        Some(format!(
            "{name}={value} does nothing here: each process is one PE, and those of a machine \
             share memory; only --hosts uses it"
        ))
    });
    let own = variable(PES).filter(|value| *value != pes.to_string());
    let own =
        own.map(|value| format!("{PES}={value} does nothing here: -n {pes} is the number of PEs"));
    of_mpi.chain(own).chain(launched(pes, &variable)).collect()
}

/// Returns the warning of the first of several processes that a launcher has started, if each would
/// start a separate job.
fn launched(pes: u32, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let started = environment::launched(variable);
    let (count, _) = started.filter(|&(count, rank)| count > 1 && rank == 0)?;
    Some(format!(
        "a launcher has started this command {count} times, and each starts a separate job with \
         -n {pes}: let the launcher start the program, or start this command once"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_settings_get_one_warning_each() {
        let warnings = |set: &[(&str, &str)]| {
            lines(2, |name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(warnings(&[]), [""; 0]);
        assert_eq!(warnings(&[(PES_PER_PROCESS, "1"), (PES, "2")]), [""; 0]);
        let all = warnings(&[(PES_PER_PROCESS, "4"), ("CONSORT_SHARING", "process"), (PES, "3")]);
        assert!(all[0].starts_with("CONSORT_PES_PER_PROCESS=4 does nothing here"), "{all:?}");
        assert!(all[1].starts_with("CONSORT_SHARING=process does nothing here"), "{all:?}");
        assert!(all[2].contains("-n 2 is the number of PEs") && all.len() == 3, "{all:?}");
        let by_slurm = |rank| warnings(&[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", rank)]);
        assert!(by_slurm("0")[0].contains("started this command 4 times"));
        assert_eq!(by_slurm("1"), [""; 0]);
        assert_eq!(warnings(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]), [""; 0]);
    }
}
