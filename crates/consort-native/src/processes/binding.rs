//! Where processes run.

/// Where processes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Each process moves its PE to a core of its own when it begins.
    #[default]
    Placed,
    /// Each stays there.
    Core,
    /// Where the system puts them.
    None,
}

impl Binding {
    const EVERY: [Self; 3] = [Self::Placed, Self::Core, Self::None];

    pub(super) fn word(self) -> u32 {
        Self::EVERY.iter().zip(0..).find(|(one, _)| **one == self).map_or(0, |(_, word)| word)
    }

    pub(super) fn of_word(word: u32) -> Self {
        Self::EVERY.get(word as usize).copied().unwrap_or_default()
    }
}
