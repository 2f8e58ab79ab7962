//! The blocks of an all-to-all as two arguments.
//~ error[E0061]
//~ at: with_counts
//~ error[E0277]: an all-to-all has blocks on both sides
//~ at: all_to_all
//~ label: needs blocks on both sides
//~ note: `.with_counts((&given, &received))`

use consort::{Displacements, Result, Team};

pub fn exchange(
    team: &Team,
    (given, mine): (&Displacements, &[u64]),
    (received, all): (&Displacements, &mut [u64]),
) -> Result<()> {
    #[cfg(not(right))]
    team.slices(mine, all).with_counts(given, received).all_to_all()?;
    #[cfg(right)]
    team.slices(mine, all).with_counts((given, received)).all_to_all()?;
    Ok(())
}
