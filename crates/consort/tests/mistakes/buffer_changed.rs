//! A buffer that is changed during a nonblocking call.
//~ error[E0502]
//~ at: mine.fill(0)
//~ label: mutable borrow occurs here

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, mine: &mut [u64], all: &mut [u64]) -> Result<()> {
    team.overlap(|scope| {
        let call = scope.start_into(&*mine, all).all_reduce(Sum)?;
        #[cfg(not(right))]
        mine.fill(0);
        call.wait()?;
        Ok(())
    })?;
    #[cfg(right)]
    mine.fill(0);
    Ok(())
}
