//! Support for the code that the derive macros generate.

use consort_fabric::Pod;

use crate::Value;
pub use crate::value::Several;

/// Plain data, as the type of a field of a struct that derives [`Pod`].
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` does not fit into a struct of plain data",
    label = "not plain data",
    note = "fields are integers, floats, arrays of them, and structs that derive `consort::Pod`; use \
            `u8` for `bool`, `u32` for `char`, and an array of bytes for a text",
    note = "for a struct that only calls on values take, derive `consort::Value` instead: its \
            fields may also be `bool`, `char`, enums without data, options and tuples"
)]
pub trait PodField: Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> PodField for T {}

/// Returns the size of a field.
#[must_use]
pub const fn bytes_of_field<T: PodField>() -> usize {
    size_of::<T>()
}

/// Returns whether fields of these sizes fill a struct of this size.
#[must_use]
pub const fn fill(bytes: usize, mut fields: &[usize]) -> bool {
    let mut sum = 0;
    while let [first, others @ ..] = fields {
        sum += *first;
        fields = others;
    }
    sum == bytes
}

/// A value, as the type of a field of a struct that derives [`Value`].
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` does not fit into a value",
    label = "not a value",
    note = "fields are plain data, such as numbers and arrays of them, `bool`, `char`, options, \
            tuples, and types that derive `consort::Pod` or `consort::Value`",
    note = "use a tuple for an array of `bool` or of other values that are not plain data; send a \
            text or a `Vec` separately, by a call on slices"
)]
pub trait ValueField<Kind> {}

#[diagnostic::do_not_recommend]
impl<T: Value<Kind>, Kind> ValueField<Kind> for T {}

/// Checks the type of a field.
pub const fn value_as_field<T: ValueField<Kind>, Kind>() {}

/// Types that derive [`Value`], which plain data cannot. With both, the kind of the value would be
/// ambiguous in each call.
pub trait EitherPodOrValue {}

impl<T: Pod> EitherPodOrValue for T {}

/// A struct of plain data, and the likeliest mistakes.
///
/// ```
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: [u32; 2] }
/// ```
///
/// Without a layout:
///
/// ```compile_fail
/// #[derive(Clone, Copy, consort::Pod)]
/// struct Record { key: u64, value: [u32; 2] }
/// ```
///
/// With padding:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: [u32; 1] }
/// ```
///
/// With a field that is not plain data:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: &'static u64 }
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: String }
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: [bool; 8] }
/// ```
///
/// With a parameter:
///
/// ```compile_fail
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Record<T> { key: u64, value: [T; 2] }
/// ```
///
/// Without `Clone` and `Copy`:
///
/// ```compile_fail,E0277
/// #[derive(consort::Pod)]
/// #[repr(C)]
/// struct Record { key: u64, value: [u32; 2] }
/// ```
///
/// As an enum:
///
/// ```compile_fail
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// enum Record { Key, Value }
/// ```
#[cfg(doctest)]
struct PodMistakes;

/// A struct and an enum as values, and the likeliest mistakes.
///
/// ```
/// #[derive(Clone, Copy, consort::Value)]
/// struct Report { done: bool, at: u64 }
/// ```
///
/// ```
/// #[derive(Clone, Copy, consort::Value)]
/// enum State { Running, Failed }
/// ```
///
/// With a field that is not a value:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, consort::Value)]
/// struct Report { done: bool, at: &'static str }
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, consort::Value)]
/// struct Report { done: bool, at: String }
/// ```
///
/// With a parameter:
///
/// ```compile_fail
/// #[derive(Clone, Copy, consort::Value)]
/// struct Report<T> { done: bool, at: T }
/// ```
///
/// With data in a variant:
///
/// ```compile_fail
/// #[derive(Clone, Copy, consort::Value)]
/// enum State { Running, Failed(u64) }
/// ```
///
/// As plain data too, which would make calls on it ambiguous:
///
/// ```compile_fail,E0119
/// #[derive(Clone, Copy, consort::Value, consort::Pod)]
/// #[repr(C)]
/// struct Report { done: u64, at: u64 }
/// ```
#[cfg(doctest)]
struct ValueMistakes;

/// Operators on complex numbers.
///
/// ```
/// # use consort::{Job, ops::Product};
/// # use num_complex::Complex;
/// Job::threads(2).run(|pe| pe.world().all_reduce(Complex::new(1.0, 0.5), Product).map(drop));
/// ```
///
/// They have no order:
///
/// ```compile_fail,E0277
/// # use consort::{Job, ops::Max};
/// # use num_complex::Complex;
/// Job::threads(2).run(|pe| pe.world().all_reduce(Complex::new(1.0, 0.5), Max).map(drop));
/// ```
#[cfg(doctest)]
struct NoOrder;
