//! `#[derive(Pod)]`.
//!
//! The generated code checks that every field is plain data, and that the sizes of the fields add
//! up to the size of the struct. A struct with the layout of C then has no padding.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Generics, Result, parenthesized, token};

const LAYOUT: &str = "a struct of plain data has a defined layout: add `#[repr(C)]`, or \
                      `#[repr(transparent)]` for a single field";
const ENUM: &str = "an enum is not plain data, because only some bits are one of its variants: \
                    derive `consort::Value` for calls on values, and store an integer in slices \
                    and symmetric memory";
const UNION: &str = "a union is not plain data: use a struct";
const GENERIC: &str = "a struct with parameters cannot derive `consort::Pod`, because its padding \
                       depends on them: write a struct for each type that you use";

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => data.fields.iter().map(|field| &field.ty),
        Data::Enum(data) => return Err(Error::new(data.enum_token.span, ENUM)),
        Data::Union(data) => return Err(Error::new(data.union_token.span, UNION)),
    };
    reject_parameters(&input.generics, GENERIC)?;
    if !has_layout(&input.attrs)? {
        return Err(Error::new_spanned(name, LAYOUT));
    }
    let padding = format!(
        "`{name}` has padding, which plain data must not have: put the fields with the largest \
         alignment first, fill gaps with fields such as `unused: [u8; 4]`, or derive \
         `consort::Value` instead if only calls on values take `{name}`"
    );
    Ok(quote! {
        const _: () = {
            ::core::assert!(
                ::consort::derive::fill(
                    ::core::mem::size_of::<#name>(),
                    &[#(::consort::derive::bytes_of_field::<#fields>()),*],
                ),
                #padding
            );

            // SAFETY: the assertion above compiles only if each field is plain data, for which zeros
            // are a value.
            #[automatically_derived]
            unsafe impl ::consort::bytemuck::Zeroable for #name {}

            // SAFETY: the assertion above compiles only if each field is plain data and the struct has
            // no padding. It has no parameters, so no reference is hidden in it.
            #[automatically_derived]
            unsafe impl ::consort::bytemuck::Pod for #name {}
        };
    })
}

/// Returns whether an attribute gives the fields the order and the places that the program states.
fn has_layout(attributes: &[Attribute]) -> Result<bool> {
    let mut found = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            // The number in `align(8)` and `packed(2)`.
            if meta.input.peek(token::Paren) {
                let number;
                parenthesized!(number in meta.input);
                number.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Rejects parameters of the type, which no macro accepts, with the given message.
pub(crate) fn reject_parameters(generics: &Generics, message: &str) -> Result<()> {
    match generics.params.first() {
        Some(_) => Err(Error::new_spanned(generics, message)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::{assert_refused, expanded};

    #[test]
    fn each_error_says_what_to_do() {
        let layout = "a defined layout: add `#[repr(C)]`";
        let parameters = "a struct for each type";
        let types = [
            ("struct A(u8);", layout),
            ("#[doc = \"a\"] #[repr(align(8))] struct A(u64);", layout),
            ("#[repr(C)] struct A<T>(T);", parameters),
            ("#[repr(C)] struct A<const N: usize>([u8; N]);", parameters),
            ("#[repr(C)] struct A<'a>(&'a u8);", parameters),
            ("#[repr(u8)] enum A { B, C }", "derive `consort::Value`"),
            ("#[repr(C)] union A { b: u8, c: i8 }", "use a struct"),
        ];
        assert_refused(expand, &types);
    }

    #[test]
    fn each_layout_of_c_is_accepted() {
        for input in [
            "#[repr(C)] struct A { b: u8 }",
            "#[repr(transparent)] struct A(u8);",
            "#[repr(C, packed(2))] struct A(u8, u32);",
            "#[repr(align(8))] #[repr(C)] struct A(u64);",
            "#[repr(packed, C)] struct A;",
        ] {
            let code = expanded(expand, input).expect(input);
            assert_eq!(code.matches("unsafe impl").count(), 2, "{code}");
            assert!(code.contains("`A` has padding"), "{code}");
        }
    }
}
