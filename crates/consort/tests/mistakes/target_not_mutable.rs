//! No `mut` before the target.
//~ error[E0308]: mismatched types
//~ at: &all
//~ label: types differ in mutability

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, mine: &[f64]) -> Result<Vec<f64>> {
    let mut all = vec![0.0; mine.len()];
    #[cfg(not(right))]
    team.slices(mine, &all).all_reduce(Sum)?;
    #[cfg(right)]
    team.slices(mine, &mut all).all_reduce(Sum)?;
    Ok(all)
}
