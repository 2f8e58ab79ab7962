//! A stated length although the slices have a length.
//~ error[E0277]: this data already determines the length of each block
//~ at: with_len
//~ note: leave out `.with_len(...)`; for a part of a slice, pass that part

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, source: &[u64], sums: &mut [u64]) -> Result<()> {
    #[cfg(not(right))]
    team.slices(source, sums).with_len(2).all_reduce(Sum)?;
    #[cfg(right)]
    team.slices(&source[..2], &mut sums[..2]).all_reduce(Sum)?;
    Ok(())
}
