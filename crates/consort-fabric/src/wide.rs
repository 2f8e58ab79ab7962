//! Operators whose partial results are wider than the elements.

use std::fmt;

/// How an operator on floats of 16 bits keeps partial results: as `f32`, which a collective rounds
/// once, at its end.
pub struct Wide {
    /// Converts elements, which are bytes here.
    pub(crate) widen: fn(&[u8]) -> Vec<f32>,
    /// Rounds each number to an element.
    pub(crate) narrow: fn(&[f32], &mut [u8]),
    pub(crate) operator: WideOperator,
}

/// An operator on `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideOperator {
    /// [`Sum`](crate::Sum)
    Sum,
    /// [`Product`](crate::Product)
    Product,
}

impl Wide {
    /// The bytes of a float that is widened.
    pub const NARROW_BYTES: usize = 2;

    /// Returns these elements as `f32`.
    #[must_use]
    pub fn widen(&self, elements: &[u8]) -> Vec<f32> {
        (self.widen)(elements)
    }

    /// Rounds the numbers to elements.
    pub fn narrow(&self, long: &[f32], elements: &mut [u8]) {
        (self.narrow)(long, elements);
    }

    /// Returns the operator on `f32`.
    #[must_use]
    pub const fn operator(&self) -> WideOperator {
        self.operator
    }
}

impl fmt::Debug for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wide").field("operator", &self.operator).finish_non_exhaustive()
    }
}
