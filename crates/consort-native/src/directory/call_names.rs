//! The numbers of calls' names.

use super::{lock::Locked, map::Full, names::Names};

/// All numbers are taken by calls that plans hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber {
    /// How many there are.
    pub most: usize,
}

impl Locked<'_> {
    fn names(&self) -> Names<'_> {
        Names::new(self.names, &self.map)
    }

    /// The number of a call's name, held once more. `recent` says which are among recent calls.
    pub(crate) fn hold_name(
        &self,
        text: &str,
        recent: impl FnOnce(&mut dyn FnMut(u64)),
    ) -> Result<u64, NoNumber> {
        let names = self.names();
        names.hold(text, recent).map_err(|Full| NoNumber { most: names.most() })
    }

    /// A holder lets go of a number.
    pub(crate) fn release_name(&self, number: u64) {
        self.names().release(number);
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        self.names().text(number)
    }
}
