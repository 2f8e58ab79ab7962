//! The libraries with which a collective or operations between two PEs are compared.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use consort::tune::Collective;
use consort_bench::peers::{
    openmp::{self, Library},
    threads,
};
use consort_console::require;

/// The name of MPI libraries among the peers.
pub(super) const MPI: &str = "mpi";
/// The name for no peer at all.
pub(super) const NO_PEER: &str = "none";

/// The libraries to compare with.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    /// Indices of thread libraries.
    pub(super) threads: Vec<usize>,
    pub(super) openmp: Vec<Library>,
    /// The commands that start programs of MPI libraries.
    pub(super) mpiruns: Vec<PathBuf>,
}

/// Reads the name of a library, of MPI, or of no peer.
pub(super) fn parser() -> PossibleValuesParser {
    let of_openmp = Library::EVERY.map(Library::name);
    PossibleValuesParser::new([&threads::names()[..], &of_openmp, &[MPI, NO_PEER]].concat())
}

impl Peers {
    /// Chooses the libraries named in `query_json`, or else all that have `collective`. If that is
    /// `None`, the PEs are processes, and MPI is the only peer. `mpiruns` are the MPI libraries to
    /// use instead of the mpirun in PATH.
    ///
    /// # Errors
    /// When the names contradict each other or the collective.
    pub(super) fn choose(
        asked: &[String],
        mpiruns: &[PathBuf],
        collective: Option<Collective>,
    ) -> Result<Self> {
        if let Some(name) = asked.iter().find(|name| ![MPI, NO_PEER].contains(&name.as_str())) {
            require!(
                collective.is_some(),
                "--peers {name}: it works only between threads; use {MPI} for processes"
            );
        }
        let is_named = |name: &str| asked.iter().any(|asked| asked == name);
        let is_asked = |name: &str| asked.is_empty() || is_named(name);
        require!(
            mpiruns.is_empty() || is_asked(MPI),
            "--mpi names an MPI library, which --peers leaves out: add {MPI} to it"
        );
        let names = threads::names();
        let serves = asked.is_empty() && collective.is_some_and(openmp::serves);
        let of_openmp = |library: &Library| serves || is_named(library.name());
        let mpiruns = match mpiruns {
            _ if !is_asked(MPI) => Vec::new(),
            [] => vec!["mpirun".into()],
            named => named.to_vec(),
        };
        Ok(Self {
            threads: (0..names.len())
                .filter(|&index| collective.is_some() && is_asked(names[index]))
                .collect(),
            openmp: Library::EVERY.into_iter().filter(of_openmp).collect(),
            mpiruns,
        })
    }
}
