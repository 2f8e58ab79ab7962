//! Values of environment variables that cannot be used.

use std::fmt;

/// An environment variable whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    variable: &'static str,
    value: String,
    expected: String,
}

impl ConfigError {
    /// Creates the error of a variable with this value. `expected` completes "use ...".
    #[must_use]
    pub fn new(
        variable: &'static str,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { variable, value: value.into(), expected: expected.into() }
    }

    /// Returns the name of the variable.
    #[must_use]
    pub const fn variable(&self) -> &'static str {
        self.variable
    }

    /// Returns the value of the variable.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Describes the values that can be used.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is `{}`: use {}", self.variable, self.value, self.expected)
    }
}

impl std::error::Error for ConfigError {}
