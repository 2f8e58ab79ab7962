//! MPI launchers: which one an `mpirun` is, and its options for hosts.
//!
//! Only Hydra and Open MPI accept a separate number of processes for each host. With Intel's
//! launcher all hosts take the same number, so every launcher gets one number for all hosts.

use std::{collections::BTreeMap, ffi::OsString, iter};

/// A launcher, by its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI's launcher.
    OpenMpi,
    /// MPICH's launcher.
    Hydra,
    /// Intel's and others, which have most of Hydra's options, and bind processes themselves.
    Other,
}

/// Processes on hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostPlacement<'h> {
    /// The hosts, in the order in which they take processes.
    pub hosts: &'h [String],
    /// The number of processes.
    pub processes: usize,
    /// The largest number of processes on a host.
    pub most: usize,
    /// Whether processes are dealt to the hosts in turn, or each host is filled in turn.
    pub in_turn: bool,
    /// Whether each line of output begins with the rank of its process.
    pub tags: bool,
    /// Whether it may run as root; some launchers have an option for that.
    pub as_root: bool,
    /// Variables for the processes; a variable without a value has the value of this process.
    pub variables: &'h BTreeMap<OsString, Option<OsString>>,
}

impl Launcher {
    /// Returns the launcher with this version text.
    #[must_use]
    pub fn of_version(text: &str) -> Self {
        if text.contains("Open MPI") || text.contains("OpenRTE") {
            Self::OpenMpi
        } else if text.contains("HYDRA") {
            Self::Hydra
        } else {
            Self::Other
        }
    }

    /// Returns its options for processes on hosts, which precede the program.
    #[must_use]
    pub fn arguments(self, on: &HostPlacement<'_>) -> Vec<OsString> {
        let mut words = match self {
            Self::OpenMpi => on.options_of_open_mpi(),
            Self::Hydra | Self::Other => on.options_of_hydra(),
        };
        words.extend(["-n".into(), on.processes.to_string().into()]);
        words
    }
}

impl HostPlacement<'_> {
    /// Returns Open MPI's options. Over ssh it passes on only named variables. By default it binds
    /// one or two processes to a core each, where their threads would wait for each other.
    fn options_of_open_mpi(&self) -> Vec<OsString> {
        let hosts = self.hosts.iter().map(|host| format!("{host}:{}", self.most));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let map = if self.in_turn { "node:oversubscribe" } else { "slot:oversubscribe" };
        let mut words = vec!["--host".into(), hosts.into(), "--map-by".into(), map.into()];
        words.extend(["--bind-to", "none"].map(OsString::from));
        words.extend(self.tags.then(|| "--tag-output".into()));
        words.extend(self.as_root.then(|| "--allow-run-as-root".into()));
        for (name, value) in self.variables {
            let mut word = name.clone();
            if let Some(value) = value {
                word.push("=");
                word.push(value);
            }
            words.extend(["-x".into(), word]);
        }
        words
    }

    /// Returns Hydra's options. It passes on all variables.
    fn options_of_hydra(&self) -> Vec<OsString> {
        let each = if self.in_turn { 1 } else { self.most };
        let hosts = self.hosts.join(",");
        let mut words = ["-hosts", &hosts, "-ppn", &each.to_string()].map(OsString::from).to_vec();
        words.extend(self.tags.then(|| "-prepend-rank".into()));
        let set = self.variables.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        words.extend(set.flat_map(|(name, value)| {
            iter::once("-genv".into()).chain([name.clone(), value.clone()])
        }));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_versions() {
        for (version, launcher) in [
            ("mpirun (Open MPI) 5.0.11", Launcher::OpenMpi),
            ("mpiexec (OpenRTE) 4.1.4", Launcher::OpenMpi),
            ("HYDRA build details:", Launcher::Hydra),
            ("Intel(R) MPI Library for Linux* OS", Launcher::Other),
        ] {
            assert_eq!(Launcher::of_version(version), launcher);
        }
    }

    #[test]
    fn launchers_get_hosts_and_variables() {
        let hosts = ["a", "b"].map(str::to_owned);
        let variables = [("LETTERS", Some("a b".into())), ("PATH", None)];
        let variables = variables.map(|(name, value)| (name.into(), value)).into();
        let blocks = HostPlacement {
            hosts: &hosts,
            processes: 3,
            most: 2,
            in_turn: false,
            tags: false,
            as_root: false,
            variables: &variables,
        };
        let in_turn = HostPlacement { in_turn: true, tags: true, as_root: true, ..blocks };
        for (launcher, of_blocks, of_turns) in [
            (
                Launcher::OpenMpi,
                "--host a:2,b:2 --map-by slot:oversubscribe --bind-to none \
                 -x LETTERS=a b -x PATH -n 3",
                "--host a:2,b:2 --map-by node:oversubscribe --bind-to none --tag-output \
                 --allow-run-as-root -x LETTERS=a b -x PATH -n 3",
            ),
            (
                Launcher::Hydra,
                "-hosts a,b -ppn 2 -genv LETTERS a b -n 3",
                "-hosts a,b -ppn 1 -prepend-rank -genv LETTERS a b -n 3",
            ),
        ] {
            for (on, words) in [(blocks, of_blocks), (in_turn, of_turns)] {
                let said = launcher.arguments(&on).join(OsString::from(" ").as_os_str());
                assert_eq!(said.to_str(), Some(words));
            }
        }
        assert_eq!(Launcher::Other.arguments(&blocks), Launcher::Hydra.arguments(&blocks));
    }
}
