//! Types with parameters, which no macro accepts.

use syn::{Error, Generics, Result};

/// Rejects parameters of the type with the given message.
pub(crate) fn reject_parameters(generics: &Generics, message: &str) -> Result<()> {
    match generics.params.first() {
        Some(_) => Err(Error::new_spanned(generics, message)),
        None => Ok(()),
    }
}
