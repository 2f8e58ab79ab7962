//! Blocks of different lengths in place.
//~ error[E0277]: this collective does not work in place
//~ at: with_counts
//~ label: needs a separate source and target
//~ note: on blocks of equal length
//~ error[E0277]: the buffers do not determine the length
//~ at: all_gather

use consort::{Displacements, Result, Team};

pub fn collect(team: &Team, mine: &[u64], blocks: &Displacements, all: &mut [u64]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(all).with_counts(blocks).all_gather()?;
    #[cfg(right)]
    team.slices(mine, all).with_counts(blocks).all_gather()?;
    Ok(())
}
