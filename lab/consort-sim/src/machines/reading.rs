//! Reads descriptions: checks values while they are read, and finds the lines of errors.
//!
//! The function that reads a value refuses it if it is invalid on its own, and `toml` knows its
//! line. A value that contradicts another is a [`Flaw`] with the keys that lead to it.

use serde::{Deserialize, Deserializer, de::Error};
use toml::{Spanned, de::DeTable};

/// The largest number of PEs of a machine. A larger number is a mistake in the file.
pub(super) const MOST_PES: u32 = 1 << 20;

/// A value that contradicts the rest of a description.
#[derive(Debug)]
pub(super) struct Flaw {
    /// The keys, and array indices from 0, that lead to it, as in `load.shared` or `hops.2`.
    pub(super) keys: String,
    /// The error, and what was expected.
    pub(super) message: String,
}

impl Flaw {
    pub(super) fn new(keys: impl Into<String>, message: impl Into<String>) -> Self {
        Self { keys: keys.into(), message: message.into() }
    }
}

/// Returns `Ok` if `holds`, or else the flaw.
pub(super) fn ensure(
    holds: bool,
    keys: impl Into<String>,
    message: impl Into<String>,
) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(Flaw::new(keys, message)) }
}

/// Returns the product of counts, if a machine can have this many PEs.
pub(super) fn product(keys: &str, counts: &[u32]) -> Result<u32, Flaw> {
    let product = counts.iter().try_fold(1_u32, |product, &count| product.checked_mul(count));
    product.filter(|&pes| (1..=MOST_PES).contains(&pes)).ok_or_else(|| {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        let counts = counts.join(" x ");
        Flaw::new(keys, format!("expected a machine of 1 to {MOST_PES} PEs, found {counts}"))
    })
}

/// Returns the line, from 1, of the byte at `offset`.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// Returns the offset of the value at these keys, or of the innermost existing table around it.
pub(super) fn offset_of(document: &Spanned<DeTable<'_>>, keys: &str) -> usize {
    let mut keys = keys.split('.');
    let Some(mut value) = keys.next().and_then(|key| document.get_ref().get(key)) else {
        return 0;
    };
    for key in keys {
        let inner = match key.parse::<usize>() {
            Ok(index) => value.get_ref().get(index),
            Err(_) => value.get_ref().get(key),
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    value.span().start
}

/// Reads a text that must not be empty.
pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("expected a text, found an empty one"));
    }
    Ok(text)
}

/// Reads a count from 1 to [`MOST_PES`].
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let count = u32::deserialize(from)?;
    if !(1..=MOST_PES).contains(&count) {
        return Err(D::Error::custom(format!("expected 1 to {MOST_PES}, found {count}")));
    }
    Ok(count)
}

/// Reads a number of bytes or words, which must not be 0.
pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let size = usize::deserialize(from)?;
    if size == 0 {
        return Err(D::Error::custom("expected 1 or more, found 0"));
    }
    Ok(size)
}

/// Reads a number above 0.
pub(super) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    if number > 0.0 && number.is_finite() {
        return Ok(number);
    }
    Err(D::Error::custom(format!("expected a number above 0, found {number}")))
}

/// Reads a number above 0 for an optional key.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    positive(from).map(Some)
}

/// Reads a number of 0 or more.
pub(super) fn not_negative<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    if number >= 0.0 && number.is_finite() {
        return Ok(number);
    }
    Err(D::Error::custom(format!("expected a number of 0 or more, found {number}")))
}

#[derive(Deserialize)]
struct Cost(#[serde(deserialize_with = "positive")] f64);

/// Reads a row of numbers above 0.
pub(super) fn row<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let row = Vec::<Cost>::deserialize(from)?;
    Ok(row.into_iter().map(|Cost(cost)| cost).collect())
}

/// Reads a row of numbers above 0 for an optional key.
pub(super) fn optional_row<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<f64>>, D::Error> {
    row(from).map(Some)
}
