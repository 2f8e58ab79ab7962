//! Origins of a segment's memory.

use std::{fmt, str::FromStr};

use consort_machine::sync::futex::Scope;

/// Whether a segment belongs to one process or can be shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Memory of one process.
    #[default]
    Private,
    /// A mapping that several processes can share. Linux only.
    Shared,
}

impl Origin {
    /// Every origin.
    pub const EVERY: [Self; 2] = [Self::Private, Self::Shared];

    const fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }

    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::Private => Scope::Process,
            Self::Shared => Scope::Machine,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that does not name an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOrigin(String);

impl fmt::Display for UnknownOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "unknown origin of shared state `{text}`: use private or shared")
    }
}

impl std::error::Error for UnknownOrigin {}

impl FromStr for Origin {
    type Err = UnknownOrigin;

    fn from_str(text: &str) -> Result<Self, UnknownOrigin> {
        let named = Self::EVERY.into_iter().find(|origin| origin.name() == text);
        named.ok_or_else(|| UnknownOrigin(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_names() {
        for origin in Origin::EVERY {
            assert_eq!(origin.to_string().parse(), Ok(origin));
        }
        let error = "elsewhere".parse::<Origin>().expect_err("no origin");
        assert!(error.to_string().contains("`elsewhere`"), "{error}");
    }
}
