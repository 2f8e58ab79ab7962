//! What the applications share: local kernels, distributed matrices, time lines, options, reports.
//!
//! | module | what |
//! | --- | --- |
//! | [`dense`] | matrix products, triangular solves, small factorizations on one PE |
//! | [`rows`] | Fourier transforms of the rows of an array on one PE |
//! | [`cyclic`] | block-cyclic distributions of one dimension |
//! | [`matrix`] | a PE's part of a distributed matrix |
//! | [`entries`] | the values that matrices are filled with |
//! | [`grid`] | the shape of a grid of PEs |
//! | [`mode`] | when panels of a matrix are broadcast |
//! | [`check`] | the largest of some errors |
//! | [`recorder`] | what a PE does when |
//! | [`timeline`] | the same of all PEs, as a picture |
//! | [`options`] | the options of all applications |
//! | [`measure`] | timed runs of an application |
//! | [`report`] | what an application prints |
//! | [`command`] | the commands of the applications, as their tests run them |
//!
//! Kernels are written in Rust by default. The features `cblas` and `fftw` take those of the
//! system's OpenBLAS and FFTW, so that a comparison with a peer has one kernel on both sides.

#[cfg(test)]
use consort_sandbox as _;

pub mod check;
pub mod command;
pub mod cyclic;
pub mod dense;
pub mod entries;
pub mod grid;
pub mod matrix;
pub mod measure;
pub mod mode;
pub mod options;
pub mod recorder;
pub mod report;
pub mod rows;
pub mod timeline;

pub use num_complex::Complex64;
