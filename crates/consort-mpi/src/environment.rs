//! The environment variables that MPI launchers set for their processes.

use std::fmt;

use consort_fabric::environment::variable;

/// A family of MPIs whose launchers and libraries belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Open MPI.
    OpenMpi,
    /// MPICH and MPIs derived from it, such as Intel MPI.
    Mpich,
}

/// A process that an MPI has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiProcess {
    /// The MPI.
    pub flavor: Flavor,
    /// The number of processes that it has started.
    pub processes: u32,
    /// The number of them on this machine, if known.
    pub here: Option<u32>,
    /// The rank of this process, if known.
    pub rank: Option<u32>,
}

impl Flavor {
    /// Both flavours.
    pub const EVERY: [Self; 2] = [Self::OpenMpi, Self::Mpich];

    /// Returns the name that is used in file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// Returns the flavour of an MPI from its version text.
    #[must_use]
    pub fn of_version(text: &str) -> Self {
        if text.contains("Open MPI") { Self::OpenMpi } else { Self::Mpich }
    }

    /// Returns the variables for the number of processes, the number on this machine, and the rank.
    const fn variables(self) -> [&'static str; 3] {
        match self {
            Self::OpenMpi => {
                ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"]
            }
            Self::Mpich => ["PMI_SIZE", "MPI_LOCALNRANKS", "PMI_RANK"],
        }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH or Intel MPI",
        })
    }
}

impl MpiProcess {
    /// Returns how an MPI has started this process; `None` if none has.
    #[must_use]
    pub fn here() -> Option<Self> {
        Self::by(|name| variable(name)?.into_string().ok())
    }

    fn by(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Flavor::EVERY.into_iter().find_map(|flavor| {
            let values = flavor.variables().map(|name| variable(name)?.parse().ok());
            let [processes, here, rank] = values;
            Some(Self { flavor, processes: processes?, here, rank })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_variables() {
        let by = |set: &[(&str, &str)]| {
            MpiProcess::by(|name| {
                let mut found = set.iter().filter(|(known, _)| *known == name);
                found.next().map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(by(&[]), None);
        let of = |flavor, processes, here| Some(MpiProcess { flavor, processes, here, rank: here });
        let open = ["SIZE", "LOCAL_SIZE", "RANK"].map(|name| format!("OMPI_COMM_WORLD_{name}"));
        let open = [(&*open[0], "4"), (&*open[1], "2"), (&*open[2], "2")];
        assert_eq!(by(&open), of(Flavor::OpenMpi, 4, Some(2)));
        assert_eq!(by(&[("PMI_SIZE", "3")]), of(Flavor::Mpich, 3, None));
        assert_eq!(by(&[("PMI_SIZE", "many")]), None);
    }

    #[test]
    fn version_text_gives_the_flavor() {
        assert_eq!(Flavor::of_version("Open MPI v4.1.4, package: Debian"), Flavor::OpenMpi);
        assert_eq!(Flavor::of_version("MPICH Version: 4.0.2"), Flavor::Mpich);
        assert_eq!(Flavor::of_version("Intel(R) MPI Library 2021.18"), Flavor::Mpich);
    }
}
