//! Functions for the tests of both macros: expand a macro, and check its errors.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

/// The expansion of a macro.
pub(crate) type Expand = fn(&DeriveInput) -> Result<TokenStream>;

/// Returns the code that a macro generates for a type.
pub(crate) fn expanded(expand: Expand, input: &str) -> Result<String> {
    expand(&syn::parse_str(input)?).map(|code| code.to_string())
}

/// Asserts that a macro refuses each type with an error that contains the words next to it.
pub(crate) fn assert_refused(expand: Expand, types: &[(&str, &str)]) {
    for (input, words) in types {
        let error = expanded(expand, input).expect_err(input).to_string();
        assert!(error.contains(words), "{input}: {error}");
    }
}
