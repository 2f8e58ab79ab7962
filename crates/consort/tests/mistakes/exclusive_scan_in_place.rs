//! An exclusive scan in place.
//~ error[E0277]: this collective does not work in place
//~ at: exclusive_scan
//~ label: needs a separate source and target
//~ note: these work in place, on blocks of equal length: `broadcast`, `all_gather`,
//~ note: for others use separate slices: `team.slices(&source, &mut target)`

use consort::{Result, Team, ops::Sum};

pub fn offsets(team: &Team, lens: &mut [u64]) -> Result<Vec<u64>> {
    let mut offsets = vec![0; lens.len()];
    #[cfg(not(right))]
    team.in_place(lens).exclusive_scan(Sum)?;
    #[cfg(right)]
    team.slices(lens, &mut offsets).exclusive_scan(Sum)?;
    Ok(offsets)
}
