//! The types of elements, and the operators on them, as numbers of the header.

use std::ffi::c_int;

use consort::bindings::named::{Number, OperatorName, OperatorOn};

use crate::status::Fault;

/// The operators, in the order of their numbers, with their names.
const OPERATORS: [(OperatorName, &str); 7] = [
    (OperatorName::Sum, "CONSORT_SUM"),
    (OperatorName::Product, "CONSORT_PROD"),
    (OperatorName::Min, "CONSORT_MIN"),
    (OperatorName::Max, "CONSORT_MAX"),
    (OperatorName::BitAnd, "CONSORT_AND"),
    (OperatorName::BitOr, "CONSORT_OR"),
    (OperatorName::BitXor, "CONSORT_XOR"),
];

/// Evaluates `$body` with `$name` as the type of this number.
macro_rules! for_type {
    ($type:expr, $name:ident => $body:expr) => {{
        macro_rules! with {
            ($one:ty) => {{
                type $name = $one;
                $body
            }};
        }
        match $type {
            0 => with!(i8),
            1 => with!(i16),
            2 => with!(i32),
            3 => with!(i64),
            4 => with!(u8),
            5 => with!(u16),
            6 => with!(u32),
            7 => with!(u64),
            8 => with!(f32),
            9 => with!(f64),
            other => Err($crate::elements::unknown_type(other)),
        }
    }};
}
pub(crate) use for_type;

#[cold]
pub(crate) fn unknown_type(number: c_int) -> Fault {
    Fault::argument(format_args!(
        "argument type is {number}, an unknown type: use one from CONSORT_INT8 (0) to \
         CONSORT_DOUBLE (9)"
    ))
}

/// Returns the operator of this number on elements of `T`.
pub(crate) fn operator<T: Number>(number: c_int) -> Result<OperatorOn<T>, Fault> {
    let known = usize::try_from(number).ok().and_then(|index| OPERATORS.get(index));
    let unknown = || {
        Fault::argument(format_args!(
            "argument op is {number}, an unknown operator: use one from CONSORT_SUM (0) to \
             CONSORT_XOR (6)"
        ))
    };
    let (name, text) = known.ok_or_else(unknown)?;
    T::operator(*name).ok_or_else(|| {
        Fault::argument(format_args!(
            "{text} does not combine floats: use CONSORT_SUM, CONSORT_PROD, CONSORT_MIN or \
             CONSORT_MAX"
        ))
    })
}
