//! Blocks as a list of lengths.
//~ error[E0277]: `&[usize]` does not state the blocks of a call
//~ at: blocks
//~ label: not displacements
//~ note: `Displacements::new(&counts)` makes them from the lengths of the blocks
//~ error[E0277]: this collective has blocks for all PEs on one side
//~ at: gather

use consort::{Displacements, Rank, Result, Team};

pub fn collect(team: &Team, mine: &[u64], lens: &[usize], all: &mut [u64]) -> Result<()> {
    #[cfg(not(right))]
    let blocks = lens;
    #[cfg(right)]
    let blocks = &Displacements::new(lens)?;
    team.slices(mine, all).with_counts(blocks).gather(Rank(0))?;
    Ok(())
}
