//! When panels of a matrix are broadcast.

/// When panels of a matrix are broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When they are needed, with blocking calls.
    Blocking,
    /// While the previous panels are used, with nonblocking calls.
    Overlap,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Blocking, Self::Overlap];

    /// Returns the name of the mode.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Overlap => "overlap",
        }
    }
}
