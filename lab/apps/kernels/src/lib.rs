//! The code that the applications share: local kernels, distributed matrices, time lines, options,
//! reports.
//!
//! | module | contents |
//! | --- | --- |
//! | [`dense`] | matrix products, triangular solves, small factorizations on one PE |
//! | [`rows`] | Fourier transforms of the rows of an array on one PE |
//! | [`cyclic`] | block-cyclic distributions of one dimension |
//! | [`matrix`] | a PE's part of a distributed matrix |
//! | [`entries`] | the values of matrices |
//! | [`grid`] | the shape of a grid of PEs |
//! | [`mode`] | when panels of a matrix are broadcast |
//! | [`check`] | the largest of some errors |
//! | [`recorder`] | records when a PE computes, communicates and waits |
//! | [`timeline`] | the records of all PEs, as a picture |
//! | [`options`] | the options of all applications |
//! | [`measure`] | timed runs of an application |
//! | [`report`] | the output of an application |
//! | [`command`] | runs the commands of the applications in their tests |
//!
//! Kernels are written in Rust by default. The features `cblas` and `fftw` use the kernels of the
//! system's OpenBLAS and FFTW. A comparison with a peer then uses the same kernel on both sides.

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
