//! A variable of the caller that all PEs would change.
//~ error[E0594]: cannot assign to `sum`, as it is a captured variable in a `Fn` closure
//~ at: sum = world.all_reduce(1, Sum)?
//~ label: cannot assign

use consort::{Job, Result, ops::Sum};

pub fn sum() -> Result<u32> {
    #[cfg(not(right))]
    {
        let mut sum = 0;
        Job::threads(2).run(|pe| {
            let world = pe.world();
            sum = world.all_reduce(1, Sum)?;
            Ok(())
        })?;
        Ok(sum)
    }
    #[cfg(right)]
    {
        let sums = Job::threads(2).run(|pe| pe.world().all_reduce(1, Sum))?;
        Ok(sums[0])
    }
}
