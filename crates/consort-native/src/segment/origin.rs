//! Origins of a segment's memory.

use std::fmt;

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

    /// Returns the name of the origin in the environment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }

    /// Returns the origin of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|origin| origin.name() == name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_names() {
        for origin in Origin::EVERY {
            assert_eq!(Origin::of_name(origin.name()), Some(origin));
        }
        assert_eq!(Origin::of_name("elsewhere"), None);
    }
}
