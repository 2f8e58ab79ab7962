//! What a library of dense kernels offers.

use super::{View, ViewMut};

/// A matrix that has no Cholesky factor.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the matrix is not positive definite: its leading part of order {order} is not")]
pub struct NotPositiveDefinite {
    /// The order of the smallest leading part that is not positive definite.
    pub order: usize,
}

/// The dense kernels of a library.
pub trait Dense: Sync {
    /// The name of the library.
    fn name(&self) -> &'static str;

    /// C += A B.
    fn add_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>);

    /// C -= A Bᵀ.
    fn subtract_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>);

    /// C -= A Aᵀ in the lower triangle of C. What lies above the diagonal is undefined afterwards.
    fn subtract_square(&self, c: ViewMut<'_>, a: View<'_>);

    /// B := B L⁻ᵀ, where L is lower triangular. What lies above its diagonal is not read.
    fn solve(&self, l: View<'_>, b: ViewMut<'_>);

    /// The Cholesky factor L of A = L Lᵀ, in place of the lower triangle of A. What lies above the
    /// diagonal is not read, and undefined afterwards.
    ///
    /// # Errors
    /// [`NotPositiveDefinite`].
    fn factor(&self, a: ViewMut<'_>) -> Result<(), NotPositiveDefinite>;
}
