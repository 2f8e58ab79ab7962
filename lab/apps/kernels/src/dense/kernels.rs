//! The interface of a library of dense kernels.

use super::{View, ViewMut};

/// The error of a matrix without a Cholesky factor.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the matrix is not positive definite: its leading part of order {order} is not")]
pub struct NotPositiveDefinite {
    /// The order of the smallest leading part that is not positive definite.
    pub order: usize,
}

/// The dense kernels of a library.
pub trait Dense: Sync {
    /// Returns the name of the library.
    fn name(&self) -> &'static str;

    /// C += A B.
    fn add_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>);

    /// C -= A Bᵀ.
    fn subtract_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>);

    /// C -= A Aᵀ in the lower triangle of C. The part above the diagonal is undefined afterwards.
    fn subtract_square(&self, c: ViewMut<'_>, a: View<'_>);

    /// B := B L⁻ᵀ, where L is lower triangular. The part above its diagonal is not read.
    fn solve(&self, l: View<'_>, b: ViewMut<'_>);

    /// Replaces the lower triangle of A by the Cholesky factor L of A = L Lᵀ. The part above the
    /// diagonal is not read, and is undefined afterwards.
    ///
    /// # Errors
    /// [`NotPositiveDefinite`].
    fn factor(&self, a: ViewMut<'_>) -> Result<(), NotPositiveDefinite>;
}
