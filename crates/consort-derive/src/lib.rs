//! The derive macros of the crate `consort`, which exports and documents them.
//!
//! The generated code names everything by its path in `consort`, so a program needs no other
//! dependency. Errors say what to do instead, and point at the part of the type that causes them.

#[cfg(test)]
mod expansion;
mod pod;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Makes a struct plain data, so that slices, symmetric memory and calls on values take it.
///
/// The struct is `#[repr(C)]` or `#[repr(transparent)]`, has no type parameters and no padding, and
/// all its fields are plain data. The compiler checks all of this.
#[proc_macro_derive(Pod)]
pub fn derive_pod(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    pod::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a struct, or an enum without data, a value that calls on values take.
///
/// All fields of the struct are values. They are packed one after another, without padding, so the
/// struct needs no `#[repr(C)]`. Of an enum, the index of the variant is sent.
#[proc_macro_derive(Value)]
pub fn derive_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    value::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}
