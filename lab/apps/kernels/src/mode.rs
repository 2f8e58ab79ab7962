//! When panels of a matrix are broadcast.

/// When panels of a matrix are broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When they are needed, by blocking calls.
    Blocking,
    /// While those before them are used, by nonblocking calls.
    Overlap,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Blocking, Self::Overlap];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Overlap => "overlap",
        }
    }
}
