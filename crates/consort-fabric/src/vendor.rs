//! Collectives that a fabric provides: in hardware, or from a vendor's library such as an MPI.

use std::future::Future;

use crate::{Collective, Local, Op, Rank, Span};

/// A call of a collective that the fabric provides. The first of the participating PEs has rank 0.
#[derive(Clone, Copy, Debug, Hash)]
pub struct VendorCall {
    /// The operation: one of [`VendorCall::COLLECTIVES`].
    pub collective: Collective,
    /// Whether the first PEs of the nodes take part instead of those of the team.
    pub leaders: bool,
    /// The root, among the participating PEs.
    pub root: Rank,
    /// The contribution: one block, or one for each participating PE.
    pub source: Span,
    /// The result, in the same form.
    pub target: Span,
    /// Bytes of a block.
    pub bytes: usize,
    /// The type of the elements, if they are combined.
    pub datatype: &'static str,
    /// The operator that combines them.
    pub operator: &'static str,
}

impl VendorCall {
    /// The collectives that libraries provide.
    pub const COLLECTIVES: [Collective; 8] = [
        Collective::Barrier,
        Collective::Broadcast,
        Collective::Scatter,
        Collective::Gather,
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Reduce,
        Collective::AllReduce,
    ];

    /// The element types that libraries combine, by their names in Rust.
    pub const DATATYPES: [&'static str; 10] =
        ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

    /// The operators that libraries have. Libraries choose the smaller or larger of two floats
    /// differently if one is a NaN or both are zero. In some, sums of short integers saturate at
    /// the largest integer on overflow (Open MPI 4.1 with AVX).
    pub const OPERATORS: [&'static str; 7] =
        ["Sum", "Product", "BitAnd", "BitOr", "BitXor", "Min", "Max"];

    /// Returns whether libraries combine elements of this type and operator as this crate does.
    #[must_use]
    pub fn combines(datatype: &str, operator: &str) -> bool {
        let is_float = matches!(datatype, "f32" | "f64");
        let is_short = matches!(datatype, "u8" | "i8" | "u16" | "i16");
        let is_known = Self::DATATYPES.contains(&datatype) && Self::OPERATORS.contains(&operator);
        let is_arithmetic = matches!(operator, "Sum" | "Product");
        is_known && (!is_float || is_arithmetic) && !(is_short && is_arithmetic)
    }
}

/// Collectives that the fabric provides, if [`Capabilities::vendor`](crate::Capabilities::vendor)
/// says so.
pub trait VendorCollectives: Local {
    /// Makes a call. All participating PEs make it, in the same order as their other such calls.
    ///
    /// # Panics
    /// When the fabric provides no collectives.
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        async move { panic!("the fabric does not provide {}", call.collective) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_combines_only_exact_operators() {
        assert!(VendorCall::combines("f64", "Sum"));
        assert!(VendorCall::combines("i32", "Max"));
        assert!(!VendorCall::combines("f64", "Max"), "NaN and -0 differ");
        assert!(VendorCall::combines("u8", "Max"));
        assert!(!VendorCall::combines("u8", "Sum"), "some saturate");
        assert!(!VendorCall::combines("[f64; 2]", "Sum"));
        assert!(!VendorCall::combines("u64", "a closure"));
    }
}
