//! The blocks of both sides in a gather.
//~ error[E0277]: this collective has blocks for all PEs on one side
//~ at: gather
//~ label: needs blocks on one side
//~ note: give only those: `.with_counts(&displacements)`

use consort::{Displacements, Rank, Result, Team};

pub fn collect(
    team: &Team,
    mine: &[u64],
    (given, received, all): (&Displacements, &Displacements, &mut [u64]),
) -> Result<()> {
    #[cfg(not(right))]
    team.slices(mine, all).with_counts((given, received)).gather(Rank(0))?;
    #[cfg(right)]
    team.slices(mine, all).with_counts(received).gather(Rank(0))?;
    Ok(())
}
