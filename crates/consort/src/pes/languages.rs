//! What libraries configure that bring Consort to programs in other languages.

use super::Pes;

impl Pes {
    /// Aligns the symmetric memory of each PE to so many bytes, at most a large page. For languages
    /// that allocate memory of any alignment there.
    #[doc(hidden)]
    #[must_use]
    pub fn heap_align(mut self, bytes: usize) -> Self {
        self.heap_align = bytes;
        self
    }

    /// Lets peers reach so many bytes behind each heap, for the static variables of the program.
    /// For languages in which those are symmetric.
    #[doc(hidden)]
    #[must_use]
    pub fn statics_bytes(mut self, bytes: usize) -> Self {
        self.statics_bytes = bytes;
        self
    }

    /// Errors name no file and line of a call: those of a library that makes calls for others say
    /// nothing to its users.
    #[doc(hidden)]
    #[must_use]
    pub fn without_places(mut self) -> Self {
        self.names_places = false;
        self
    }
}
