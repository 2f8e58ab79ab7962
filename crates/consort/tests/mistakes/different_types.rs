//! A source and a target of different types.
//~ error[E0308]: mismatched types
//~ at: &mut all
//~ label: expected `&mut [f64]`, found `&mut Vec<f32>`

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, mine: &[f64]) -> Result<()> {
    #[cfg(not(right))]
    let mut all = vec![0.0_f32; mine.len()];
    #[cfg(right)]
    let mut all = vec![0.0_f64; mine.len()];
    team.slices(mine, &mut all).all_reduce(Sum)
}
