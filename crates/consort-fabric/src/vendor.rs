//! Collectives that a fabric itself has: of its hardware, or of a vendor's library such as an MPI.

use std::future::Future;

use crate::{Collective, Local, Op, Rank, Span};

/// Who takes part in collectives that a fabric itself has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vendor {
    /// Whether the PEs of the team can.
    pub team: bool,
    /// Whether the first PEs of its nodes can.
    pub leaders: bool,
}

impl Vendor {
    /// Nobody.
    pub const NONE: Self = Self { team: false, leaders: false };
}

/// A call of such a collective. The first PE of those that take part has rank 0.
#[derive(Clone, Copy, Debug)]
pub struct VendorCall {
    /// The operation: one of [`VendorCall::COLLECTIVES`].
    pub collective: Collective,
    /// Whether the first PEs of the nodes take part, and not those of the team.
    pub leaders: bool,
    /// The root, among those that take part.
    pub root: Rank,
    /// The contribution: one block, or one for each of those that take part.
    pub source: Span,
    /// The result, in the same form.
    pub target: Span,
    /// Bytes of a block.
    pub bytes: usize,
    /// The type of the elements, if they are combined.
    pub datatype: &'static str,
    /// The operator by which they are.
    pub operator: &'static str,
}

impl VendorCall {
    /// The collectives of libraries.
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

    /// The types of elements that libraries combine, by their names in Rust.
    pub const DATATYPES: [&'static str; 10] =
        ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

    /// The operators that libraries have. The smaller and the larger of two floats they choose in
    /// another way where one is no number, or both are zero. Sums of short integers that overflow
    /// are the largest integer in some (Open MPI 4.1 with AVX).
    pub const OPERATORS: [&'static str; 7] =
        ["Sum", "Product", "BitAnd", "BitOr", "BitXor", "Min", "Max"];

    /// Whether libraries combine elements of a type by an operator as this one does.
    #[must_use]
    pub fn combines(datatype: &str, operator: &str) -> bool {
        let is_float = matches!(datatype, "f32" | "f64");
        let is_short = matches!(datatype, "u8" | "i8" | "u16" | "i16");
        let is_known = Self::DATATYPES.contains(&datatype) && Self::OPERATORS.contains(&operator);
        let is_arithmetic = matches!(operator, "Sum" | "Product");
        is_known && (!is_float || is_arithmetic) && !(is_short && is_arithmetic)
    }
}

/// Collectives of the fabric's own, where [`Capabilities::vendor`](crate::Capabilities::vendor)
/// says so.
pub trait VendorCollectives: Local {
    /// Makes a call. All that take part make it, in the same order as their other such calls.
    ///
    /// # Panics
    /// Where the fabric has none.
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        async move { panic!("the fabric has no {} of its own", call.collective) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_combine_as_we_do() {
        assert!(VendorCall::combines("f64", "Sum"));
        assert!(VendorCall::combines("i32", "Max"));
        assert!(!VendorCall::combines("f64", "Max"), "NaN and -0 differ");
        assert!(VendorCall::combines("u8", "Max"));
        assert!(!VendorCall::combines("u8", "Sum"), "some saturate");
        assert!(!VendorCall::combines("[f64; 2]", "Sum"));
        assert!(!VendorCall::combines("u64", "a closure"));
    }
}
