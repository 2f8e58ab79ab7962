//! A handle of a PE in a task that may change threads.
//~ error[]: future cannot be sent between threads safely
//~ at: spawn(async move { Ok(sum.await?[0]) })
//~ note: await in a `LocalSet`

use consort::{Result, Team, ops::Sum};

fn spawn(_: impl Future<Output = Result<u64>> + Send) {}

pub fn sum_in_a_task(team: Team, mine: u64) -> Result<()> {
    let sum = team.start(vec![mine]).all_reduce(Sum)?;
    #[cfg(not(right))]
    spawn(async move { Ok(sum.await?[0]) });
    #[cfg(right)]
    {
        let sum = sum.wait()?[0]; // or await it in a `LocalSet`
        spawn(async move { Ok(sum) });
    }
    Ok(())
}
