//! Dense kernels on one PE: products, triangular solves, small factorizations.
//!
//! Matrices are stored by columns, as in BLAS. A view is a part of a matrix: column `j` begins at
//! `j * stride`.

#[cfg(feature = "cblas")]
mod cblas;
mod kernels;
#[cfg(not(feature = "cblas"))]
mod native;
mod view;

pub use kernels::{Dense, NotPositiveDefinite};
pub use view::{Part, View, ViewMut};

/// Returns the kernels of this build.
#[must_use]
pub fn dense() -> &'static dyn Dense {
    #[cfg(feature = "cblas")]
    return cblas::kernels();
    #[cfg(not(feature = "cblas"))]
    &native::Native
}

#[cfg(test)]
mod tests;
