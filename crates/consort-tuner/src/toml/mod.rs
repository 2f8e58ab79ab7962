//! Reads and writes the subset of TOML that wisdom and recorded calls use.
//!
//! The subset consists of comments, tables `[one]` and `[one.two]`, arrays of tables `[[one]]`, and
//! lines `key = value`, where a value is a string in one pair of double or single quotes, a decimal
//! integer, a float, a boolean, or an array of these. Keys are bare or quoted.
//!
//! Strings in three quotes, dates, inline tables, dotted keys, arrays within arrays, numbers of
//! base 16, 8 or 2, and tables with more than two names are left out on purpose, and errors name
//! them. No file uses them, and users' programs compile this module instead of a library for all of
//! TOML. Without them nothing nests, so neither reading nor dropping recurses.
//!
//! Later file formats must keep to this subset, or older programs report them as errors.
//!
//! Every error has its line. Tests compare this module with the crate `toml`.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub(crate) use read::read;
pub(crate) use write::Writer;

/// The largest number of characters of a text that an error shows.
const SHOWN: usize = 40;

/// The reason why a text cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The error, and what was expected.
    pub(crate) message: String,
}

/// A value, and the line where it begins.
#[derive(Debug)]
pub(crate) struct Value {
    line: usize,
    kind: ValueKind,
}

#[derive(Debug)]
enum ValueKind {
    String(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Array(Vec<Value>),
}

/// The value or the tables of a key.
#[derive(Debug)]
enum Node {
    Value(Value),
    TomlTable(TomlTable),
    Tables(Vec<TomlTable>),
}

/// A table, or the whole text, which is a table too.
#[derive(Debug)]
pub(crate) struct TomlTable {
    line: usize,
    /// Whether a header names it, rather than only the header of a table inside it.
    is_named: bool,
    nodes: BTreeMap<String, Node>,
}

impl TomlTable {
    fn at(line: usize, is_named: bool) -> Self {
        Self { line, is_named, nodes: BTreeMap::new() }
    }

    /// Returns the line where it begins.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Checks that it has only these keys.
    pub(crate) fn only(&self, keys: &[&str]) -> Result<(), Error> {
        let unknown = self.nodes.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        let Some((key, node)) = unknown.min_by_key(|(_, node)| node.line()) else { return Ok(()) };
        let known: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let known = match &known[..] {
            [_, _, _, ..] => format!("one of {}", known.join(", ")),
            _ => known.join(" or "),
        };
        let message = format!("unknown field `{}`, expected {known}", shown(key));
        Err(Error { line: node.line(), message })
    }

    /// Returns the value of a mandatory key.
    pub(crate) fn get<T: FromValue>(&self, key: &str) -> Result<T, Error> {
        self.find(key)?.ok_or_else(|| self.missing(key))
    }

    /// Returns the value of an optional key.
    pub(crate) fn find<T: FromValue>(&self, key: &str) -> Result<Option<T>, Error> {
        self.nodes.get(key).map(Node::as_value).transpose()
    }

    /// Returns the table of a mandatory key.
    pub(crate) fn table(&self, key: &str) -> Result<&Self, Error> {
        match self.nodes.get(key) {
            None => Err(self.missing(key)),
            Some(Node::TomlTable(table)) => Ok(table),
            Some(other) => Err(other.wrong_type("a table")),
        }
    }

    /// Returns the tables of a key; none if there is no such key.
    pub(crate) fn tables(&self, key: &str) -> Result<&[Self], Error> {
        match self.nodes.get(key) {
            None => Ok(&[]),
            Some(Node::Tables(tables)) => Ok(tables),
            Some(other) => Err(other.wrong_type(&format!("tables `[[{key}]]`"))),
        }
    }

    /// Returns all values by key.
    pub(crate) fn values<T: FromValue>(&self) -> Result<BTreeMap<String, T>, Error> {
        self.nodes.iter().map(|(key, node)| Ok((key.clone(), node.as_value()?))).collect()
    }

    fn missing(&self, key: &str) -> Error {
        Error { line: self.line, message: format!("missing field `{key}`") }
    }
}

impl Node {
    fn line(&self) -> usize {
        match self {
            Self::Value(value) => value.line,
            Self::TomlTable(table) => table.line,
            Self::Tables(tables) => tables.first().map_or(1, |table| table.line),
        }
    }

    fn as_value<T: FromValue>(&self) -> Result<T, Error> {
        match self {
            Self::Value(value) => T::from_value(value),
            Self::TomlTable(_) | Self::Tables(_) => Err(self.wrong_type(T::EXPECTED)),
        }
    }

    fn wrong_type(&self, expected: &str) -> Error {
        match self {
            Self::Value(value) => value.wrong_type(expected),
            Self::TomlTable(_) => self.of_type("table", expected),
            Self::Tables(_) => self.of_type("array of tables", expected),
        }
    }

    fn of_type(&self, found: &str, expected: &str) -> Error {
        let message = format!("invalid type: {found}, expected {expected}");
        Error { line: self.line(), message }
    }
}

impl Value {
    fn wrong_type(&self, expected: &str) -> Error {
        self.error(format!("invalid type: {}, expected {expected}", self.kind))
    }

    fn error(&self, message: String) -> Error {
        Error { line: self.line, message }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "string \"{}\"", shown(text)),
            Self::Integer(number) => write!(f, "integer `{number}`"),
            Self::Float(number) => write!(f, "floating point `{number:?}`"),
            Self::Boolean(yes) => write!(f, "boolean `{yes}`"),
            Self::Array(_) => f.write_str("array"),
        }
    }
}

/// Returns the part of a text that a one-line error shows.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A type whose values can be read.
pub(crate) trait FromValue: Sized {
    /// The expected type, for errors.
    const EXPECTED: &'static str;

    fn from_value(value: &Value) -> Result<Self, Error>;
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl FromValue for $integer {
            const EXPECTED: &'static str = stringify!($integer);

            fn from_value(value: &Value) -> Result<Self, Error> {
                let ValueKind::Integer(number) = value.kind else {
                    return Err(value.wrong_type(Self::EXPECTED));
                };
                Self::try_from(number).map_err(|_| {
                    let (found, expected) = (&value.kind, Self::EXPECTED);
                    value.error(format!("invalid value: {found}, expected {expected}"))
                })
            }
        }
    )*};
}

integers!(u32 u64 usize);

impl FromValue for f64 {
    const EXPECTED: &'static str = "f64";

    fn from_value(value: &Value) -> Result<Self, Error> {
        match value.kind {
            ValueKind::Float(number) => Ok(number),
            ValueKind::Integer(number) => Ok(number as Self),
            _ => Err(value.wrong_type(Self::EXPECTED)),
        }
    }
}

impl FromValue for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_value(value: &Value) -> Result<Self, Error> {
        match value.kind {
            ValueKind::Boolean(yes) => Ok(yes),
            _ => Err(value.wrong_type(Self::EXPECTED)),
        }
    }
}

impl FromValue for String {
    const EXPECTED: &'static str = "a string";

    fn from_value(value: &Value) -> Result<Self, Error> {
        match &value.kind {
            ValueKind::String(text) => Ok(text.clone()),
            _ => Err(value.wrong_type(Self::EXPECTED)),
        }
    }
}

/// A value that the file stores as text.
pub(crate) struct TextValue<T>(pub(crate) T);

impl<T: FromStr<Err: fmt::Display>> FromValue for TextValue<T> {
    const EXPECTED: &'static str = String::EXPECTED;

    fn from_value(value: &Value) -> Result<Self, Error> {
        let text = String::from_value(value)?;
        text.parse().map(Self).map_err(|error| value.error(error.to_string()))
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const EXPECTED: &'static str = "an array";

    fn from_value(value: &Value) -> Result<Self, Error> {
        match &value.kind {
            ValueKind::Array(values) => values.iter().map(T::from_value).collect(),
            _ => Err(value.wrong_type(Self::EXPECTED)),
        }
    }
}

impl<T: FromValue> FromValue for (T, T) {
    const EXPECTED: &'static str = "an array of 2 values";

    fn from_value(value: &Value) -> Result<Self, Error> {
        match &value.kind {
            ValueKind::Array(values) => match &values[..] {
                [first, second] => Ok((T::from_value(first)?, T::from_value(second)?)),
                _ => {
                    let (length, expected) = (values.len(), Self::EXPECTED);
                    Err(value.error(format!("invalid length {length}, expected {expected}")))
                }
            },
            _ => Err(value.wrong_type(Self::EXPECTED)),
        }
    }
}
