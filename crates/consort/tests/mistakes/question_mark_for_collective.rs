//! `?` in place of the collective.
//~ error[E0277]: the `?` operator
//~ label: Call<

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, sums: &mut [u32]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(sums)?;
    #[cfg(right)]
    team.in_place(sums).all_reduce(Sum)?;
    Ok(())
}
