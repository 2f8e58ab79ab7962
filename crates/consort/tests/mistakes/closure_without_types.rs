//! A closure without the types of its parameters.
//~ error[E0282]: type annotations needed
//~ at: a

use consort::{Result, Team};

pub fn most(team: &Team, mine: &mut [f64]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(mine).all_reduce(|a, b| a.max(b))?;
    #[cfg(right)]
    team.in_place(mine).all_reduce(|a: f64, b: f64| a.max(b))?;
    Ok(())
}
