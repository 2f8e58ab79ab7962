//! The placement of processes.

/// The placement of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Each process moves its PE to a separate core when it begins.
    #[default]
    Placed,
    /// Each process also stays on that core.
    Core,
    /// The system places the processes.
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
