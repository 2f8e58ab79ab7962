//! Wrong usage: what was asked for cannot be.

use std::{error::Error, fmt};

/// Wrong usage, and what would be right.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}
