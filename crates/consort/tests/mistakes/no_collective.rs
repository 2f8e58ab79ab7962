//! Data without a collective.
//~ warning[unused_must_use]: that must be used
//~ at: team.in_place(sums)
//~ note: this only names the data of a call: call a collective on it, such as `.all_reduce(Sum)`

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, sums: &mut [u32]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(sums);
    #[cfg(right)]
    team.in_place(sums).all_reduce(Sum)?;
    Ok(())
}
