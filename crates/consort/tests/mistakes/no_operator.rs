//! No operator.
//~ error[E0061]
//~ at: all_reduce

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, sums: &mut [u32]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(sums).all_reduce()?;
    #[cfg(right)]
    team.in_place(sums).all_reduce(Sum)?;
    Ok(())
}
