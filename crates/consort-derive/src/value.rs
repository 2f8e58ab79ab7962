//! `#[derive(Value)]`.
//!
//! A struct is packed as a tuple of its fields would be. Each field has a kind, which only the
//! compiler knows, so the kinds are parameters of the implementation. They appear in the struct's
//! own kind, next to the types of the fields. This keeps a private field out of the public
//! interface. An enum is packed as the index of its variant.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DataEnum, DataStruct, DeriveInput, Error, Ident, Member, Result};

use crate::pod::reject_parameters;

const GENERIC: &str = "a type with parameters cannot derive `consort::Value`: write a type for \
                       each that you use, or implement `consort::Value`, which has an example";
const DATA: &str = "an enum whose variants have data cannot derive `consort::Value`: put the data \
                    next to the enum in a struct, or implement `consort::Value`, which has an \
                    example";
const EMPTY: &str = "an enum without variants has no values";
const MANY: &str = "an enum with more than 2^32 variants";
const UNION: &str = "a union cannot derive `consort::Value`: use a struct";

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    reject_parameters(&input.generics, GENERIC)?;
    let implementation = match &input.data {
        Data::Struct(data) => of_struct(name, data),
        Data::Enum(data) => of_enum(name, data)?,
        Data::Union(data) => return Err(Error::new(data.union_token.span, UNION)),
    };
    Ok(quote! {
        const _: () = {
            #implementation

            #[automatically_derived]
            impl ::consort::derive::EitherPodOrValue for #name {}
        };
    })
}

fn of_struct(name: &Ident, data: &DataStruct) -> TokenStream {
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    let members: Vec<Member> = data.fields.members().collect();
    // A program does not use these names, which would hide its types.
    let kinds: Vec<_> = (0..types.len()).map(|at| format_ident!("__Kind{at}")).collect();
    let fields: Vec<_> = (0..types.len()).map(|at| format_ident!("__field{at}")).collect();
    let value = quote!(::consort::Value);
    let several = quote!(::consort::derive::Several);
    let nested = |parts: Vec<TokenStream>,
                  join: &dyn Fn(TokenStream, TokenStream) -> TokenStream| {
        let all = parts.into_iter().rev().reduce(|others, first| join(first, others));
        all.unwrap_or_else(|| quote!(()))
    };
    let packed = types.iter().zip(&kinds).map(|(of, kind)| quote!(<#of as #value<#kind>>::Packed));
    let packed = nested(packed.collect(), &|first, others| quote!(#several<#first, #others>));
    let pack = types.iter().zip(&kinds).zip(&fields);
    let pack = pack.map(|((of, kind), field)| quote!(<#of as #value<#kind>>::pack(#field)));
    let pack = nested(pack.collect(), &|first, others| quote!(#several(#first, #others)));
    let pattern = fields.iter().map(|field| quote!(#field)).collect();
    let pattern = nested(pattern, &|first, others| quote!(#several(#first, #others)));
    quote! {
        #(::consort::derive::value_as_field::<#types, _>();)*

        #[automatically_derived]
        #[allow(deprecated, clippy::unused_unit)]
        impl<#(#kinds),*> #value<(#((#types, #kinds),)*)> for #name
        where
            #(#types: #value<#kinds>,)*
        {
            type Packed = #packed;

            #[inline]
            fn pack(self) -> Self::Packed {
                let Self { #(#members: #fields),* } = self;
                #pack
            }

            #[inline]
            fn unpack(#pattern: Self::Packed) -> Self {
                Self { #(#members: <#types as #value<#kinds>>::unpack(#fields)),* }
            }
        }
    }
}

fn of_enum(name: &Ident, data: &DataEnum) -> Result<TokenStream> {
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new_spanned(&variant.fields, DATA));
    }
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let [first, others @ ..] = &variants[..] else { return Err(Error::new_spanned(name, EMPTY)) };
    let last = u32::try_from(others.len()).map_err(|_| Error::new_spanned(name, MANY))?;
    let packed = if u8::try_from(last).is_ok() { quote!(u8) } else { quote!(u32) };
    let index = (1..=last).map(Literal::u32_unsuffixed).collect::<Vec<_>>();
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated, clippy::unused_unit)]
        impl ::consort::Value<()> for #name {
            type Packed = ::core::primitive::#packed;

            #[inline]
            fn pack(self) -> Self::Packed {
                match self {
                    Self::#first {} => 0,
                    #(Self::#others {} => #index,)*
                }
            }

            #[inline]
            fn unpack(packed: Self::Packed) -> Self {
                match packed {
                    #(#index => Self::#others {},)*
                    // No PE sends another number.
                    _ => Self::#first {},
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::{assert_refused, expanded};

    #[test]
    fn each_error_says_what_to_do() {
        let types = [
            ("struct A<T>(T);", "a type for each that you use"),
            ("enum A { B, C(u8) }", "put the data next to the enum in a struct"),
            ("enum A { B, C { d: u8 } }", "put the data next to the enum in a struct"),
            ("enum A {}", EMPTY),
            ("union A { b: u8, c: i8 }", "use a struct"),
        ];
        assert_refused(expand, &types);
    }

    #[test]
    fn long_enums_are_packed_in_more_bytes() {
        let code_of = |variants: usize| {
            let variants: String = (0..variants).map(|at| format!("V{at},")).collect();
            expanded(expand, &format!("enum A {{ {variants} }}")).expect("an enum")
        };
        assert!(code_of(256).contains("primitive :: u8"));
        assert!(code_of(256).contains("255 => Self :: V255"));
        assert!(code_of(257).contains("primitive :: u32"));
        assert!(code_of(257).contains("256 => Self :: V256"));
    }
}
