//! Origins of a segment's memory.

use consort_machine::sync::futex::Scope;

consort_fabric::named_enum! {
    /// Whether a segment belongs to one process or can be shared.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Origin {
        /// Memory of one process.
        #[default]
        Private = "private",
        /// A mapping that several processes can share. Linux only.
        Shared = "shared",
    }
}

impl Origin {
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
