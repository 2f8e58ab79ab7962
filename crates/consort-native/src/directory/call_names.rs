//! The names of calls and their numbers.

use super::{lock::Locked, map::Full, names::Names};

/// All numbers belong to calls that plans hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber {
    /// How many numbers there are.
    pub most: usize,
}

impl Locked<'_> {
    fn names(&self) -> Names<'_> {
        Names::new(self.names, &self.map)
    }

    /// The number of a call's name, with one more hold. `recent` passes the numbers of recent
    /// calls.
    pub(crate) fn hold_name(
        &self,
        text: &str,
        recent: impl FnOnce(&mut dyn FnMut(u64)),
    ) -> Result<u64, NoNumber> {
        let names = self.names();
        names.hold(text, recent).map_err(|Full| NoNumber { most: names.most() })
    }

    /// Removes a hold from a number.
    pub(crate) fn release_name(&self, number: u64) {
        self.names().release(number);
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        self.names().text(number)
    }
}
