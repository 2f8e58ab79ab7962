//! The blocks of a vector variant, as a program states them.

use crate::Displacements;

/// The blocks of this PE's source and of its target, where it has one for each PE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sides<'d> {
    pub(crate) given: Option<&'d Displacements>,
    pub(crate) received: Option<&'d Displacements>,
}

/// The blocks of unequal length of a call: those of one buffer, or those of source and target.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not state the blocks of a call",
    label = "not displacements",
    note = "give `&displacements`, or `(&given, &received)` for an all-to-all; \
            `Displacements::new(&counts)` makes them from the lengths of the blocks"
)]
pub trait Counts: Copy + sealed::Sealed {}

/// Blocks on one side, for a scatter, a gather or an all-gather.
#[diagnostic::on_unimplemented(
    message = "this collective has blocks for all PEs on one side",
    label = "needs blocks on one side",
    note = "give only those: `.with_counts(&displacements)`"
)]
pub trait OneSide: Counts {
    #[doc(hidden)]
    fn blocks(&self) -> &Displacements;
}

/// Blocks on both sides, for an all-to-all.
#[diagnostic::on_unimplemented(
    message = "an all-to-all has blocks on both sides",
    label = "needs blocks on both sides",
    note = "give those that this PE sends and those that it receives: \
            `.with_counts((&given, &received))`"
)]
pub trait BothSides: Counts {
    #[doc(hidden)]
    fn sides(&self) -> Sides<'_>;
}

mod sealed {
    use crate::Displacements;

    pub trait Sealed {}

    impl Sealed for &Displacements {}
    impl Sealed for (&Displacements, &Displacements) {}
}

impl Counts for &Displacements {}
impl Counts for (&Displacements, &Displacements) {}

impl OneSide for &Displacements {
    fn blocks(&self) -> &Displacements {
        self
    }
}

impl BothSides for (&Displacements, &Displacements) {
    fn sides(&self) -> Sides<'_> {
        Sides { given: Some(self.0), received: Some(self.1) }
    }
}
