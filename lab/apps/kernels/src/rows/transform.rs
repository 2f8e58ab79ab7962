//! The interface of a library of transforms.

use num_complex::Complex64;

/// The sign of a transform's exponent. Neither direction divides by the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Minus.
    Forward,
    /// Plus.
    Inverse,
}

/// A transform of rows of one length, planned once.
pub trait Rows: Send {
    /// Transforms each row of `data` in place.
    ///
    /// # Panics
    /// When `data` does not consist of whole rows.
    fn transform(&mut self, data: &mut [Complex64]);
}
