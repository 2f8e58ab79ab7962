//! A closure that borrows, in a call that may outlive its caller.
//~ error[E0373]: closure may outlive the current function
//~ at: |a: u64, b: u64|

use consort::{Result, Team};

pub fn sums(team: &Team, mine: Vec<u64>, modulus: u64) -> Result<()> {
    #[cfg(not(right))]
    team.start(mine).all_reduce(|a: u64, b: u64| (a + b) % modulus)?;
    #[cfg(right)]
    team.start(mine).all_reduce(move |a: u64, b: u64| (a + b) % modulus)?;
    Ok(())
}
