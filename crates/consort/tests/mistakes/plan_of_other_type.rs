//! A plan that is started on elements of another type.
//~ error[E0308]: mismatched types
//~ at: data
//~ label: expected `Vec<f64>`, found `Vec<f32>`

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team) -> Result<()> {
    let plan = team.plan::<f64>(3).all_reduce(Sum)?;
    #[cfg(not(right))]
    let data = vec![0.0_f32; 3];
    #[cfg(right)]
    let data = vec![0.0_f64; 3];
    plan.start(data)?.wait()?;
    Ok(())
}
