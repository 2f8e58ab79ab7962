//! The names of calls and their numbers.

use super::{lock::LockedDirectory, map::MapFull, names::Names};

/// The error if plans hold all numbers, so that none is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumbersExhausted {
    /// How many numbers there are.
    pub most: usize,
}

impl LockedDirectory<'_> {
    fn names(&self) -> Names<'_> {
        Names::new(self.names, &self.map)
    }

    /// Returns the number of a call's name, and adds a hold to it. `recent` passes on the numbers
    /// of recent calls.
    pub(crate) fn hold_name(
        &self,
        text: &str,
        recent: impl FnOnce(&mut dyn FnMut(u64)),
    ) -> Result<u64, NumbersExhausted> {
        let names = self.names();
        names.hold(text, recent).map_err(|MapFull| NumbersExhausted { most: names.most() })
    }

    pub(crate) fn release_name(&self, number: u64) {
        self.names().release(number);
    }

    pub(crate) fn name(&self, number: u64) -> Option<String> {
        self.names().text(number)
    }
}
