//! A call that is awaited before its error is handled.
//~ error[E0277]: is not a future
//~ at: await

use consort::{Result, Team, ops::Sum};

pub async fn sums(team: &Team, mine: Vec<u64>) -> Result<Vec<u64>> {
    #[cfg(not(right))]
    let sums = team.start(mine).all_reduce(Sum).await?;
    #[cfg(right)]
    let sums = team.start(mine).all_reduce(Sum)?.await?;
    Ok(sums)
}
