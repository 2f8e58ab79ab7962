//! Replaces the transport in a program that was compiled without the feature `shim`.

use std::{error::Error, fmt};

use consort_native::Transport;

use crate::MpiProcess;

/// A process that an MPI has started. Without the feature `shim` there is none.
#[derive(Debug)]
pub enum Mpi {}

/// The program was compiled without the feature `shim`.
#[derive(Debug)]
pub struct MpiError;

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an MPI has started this process, but the program was compiled without the feature \
             `mpi` of the crate consort: add it in Cargo.toml",
        )
    }
}

impl Error for MpiError {}

impl Mpi {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn begin(_: &MpiProcess) -> Result<Self, MpiError> {
        Err(MpiError)
    }

    /// Returns the number of this process.
    pub fn rank(&self) -> u32 {
        match *self {}
    }

    /// Returns a warning about the shim.
    pub fn warning(&self) -> Option<&str> {
        match *self {}
    }

    /// Gathers words of all processes.
    ///
    /// # Errors
    /// Never: there is no such value.
    pub fn gather(&self, _: &[u64]) -> Result<Vec<u64>, MpiError> {
        match *self {}
    }

    /// Says whether this process is the first of those that share memory.
    ///
    /// # Errors
    /// Never: there is no such value.
    pub fn lead(&self, _: bool) -> Result<(), MpiError> {
        match *self {}
    }

    /// Compares the settings of all processes.
    ///
    /// # Errors
    /// Never: there is no such value.
    pub fn ensure_same(
        &mut self,
        _: &[(&'static str, u64)],
        _: impl Fn(usize) -> String,
    ) -> Result<(), MpiError> {
        match *self {}
    }

    /// Returns the transport of the job.
    pub fn into_transport(self) -> Box<dyn Transport> {
        match self {}
    }

    /// Ends a job that has not begun on all processes.
    pub fn end(self) {
        match self {}
    }
}
