//! Replaces the transport in a program that was compiled without the feature `shim`.

#![expect(unsafe_code, reason = "implements an unsafe trait's methods for a type without values")]

use std::{error::Error, fmt};

use consort_native::{Frame, Transfer, TransferBuffer, Transport, TransportError};

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
}

impl Transport for Mpi {
    fn rank(&self) -> u32 {
        match *self {}
    }

    fn processes(&self) -> u32 {
        match *self {}
    }

    fn send(&mut self, _: u32, _: Frame) -> Result<(), TransportError> {
        match *self {}
    }

    fn receive(&mut self) -> Result<Option<(u32, Frame)>, TransportError> {
        match *self {}
    }

    unsafe fn push(
        &mut self,
        _: u32,
        _: u32,
        _: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        match *self {}
    }

    unsafe fn pull(
        &mut self,
        _: u32,
        _: u32,
        _: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        match *self {}
    }

    fn is_done(&mut self, _: Transfer) -> Result<bool, TransportError> {
        match *self {}
    }

    fn is_moving(&self) -> bool {
        match *self {}
    }

    fn cancel(&mut self, _: Transfer) {
        match *self {}
    }

    fn is_flushed(&mut self) -> Result<bool, TransportError> {
        match *self {}
    }

    fn close(&mut self, _: Option<&str>) {
        match *self {}
    }
}
