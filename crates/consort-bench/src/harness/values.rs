//! Collectives of values. A call copies its values, so Loose modes need no symmetric memory.
//!
//! A value is an array of doubles with one of a few lengths. A closure adds values longer than one
//! double, so their operator is ordered.

use consort::{
    Pod, Rank, Result, Team,
    ops::{Operator, Sum},
    tune::{Collective, Query},
};
use consort_fabric::OperatorClass;

/// The longest value, in bytes.
const MOST_BYTES: u64 = 4096;

/// Returns whether a query about private buffers can be measured with values.
pub(super) fn can_ask(query: &Query) -> bool {
    let has_sum = query.bytes == 8 || query.operator == OperatorClass::Ordered;
    (8..=MOST_BYTES).contains(&query.bytes)
        && query.bytes.is_power_of_two()
        && (!query.collective.combines() || has_sum)
}

/// Makes a call on values of `len` doubles, a length that [`can_ask`] accepts, with sums.
#[inline]
pub(super) fn call(
    team: &Team,
    collective: Collective,
    source: &[f64],
    target: &mut [f64],
    len: usize,
) -> Result<()> {
    macro_rules! of_length {
        ($($known:literal)*) => {
            match len {
                1 => call_on(team, collective, source, target, Sum),
                $($known => call_on_arrays::<$known>(team, collective, source, target),)*
                other => unreachable!("no values of {other} doubles"),
            }
        };
    }
    of_length!(2 4 8 16 32 64 128 256 512)
}

fn call_on_arrays<const N: usize>(
    team: &Team,
    collective: Collective,
    source: &[f64],
    target: &mut [f64],
) -> Result<()>
where
    [f64; N]: Pod,
{
    let source: &[[f64; N]] = bytemuck::cast_slice(source);
    call_on(team, collective, source, bytemuck::cast_slice_mut(target), add::<N>)
}

/// Makes a call with one value per block.
#[inline]
fn call_on<T: Pod, O: Operator<T>>(
    team: &Team,
    collective: Collective,
    source: &[T],
    target: &mut [T],
    operator: O,
) -> Result<()> {
    let root = Rank(0);
    let mine = source.first().copied().unwrap_or(T::zeroed());
    let one = match collective {
        Collective::Barrier => return team.barrier(),
        Collective::Gather => {
            if let Some(all) = team.gather(mine, root)? {
                target.copy_from_slice(&all);
            }
            return Ok(());
        }
        Collective::AllGather => {
            target.copy_from_slice(&team.all_gather(mine)?);
            return Ok(());
        }
        Collective::AllToAll => {
            target.copy_from_slice(&team.all_to_all(source)?);
            return Ok(());
        }
        Collective::ScatterVector
        | Collective::GatherVector
        | Collective::AllGatherVector
        | Collective::AllToAllVector => {
            return team.slices(source, target).any(collective, operator, root);
        }
        Collective::Broadcast => Some(team.broadcast(mine, root)?),
        Collective::Scatter => Some(team.scatter(source, root)?),
        Collective::Reduce => team.reduce(mine, operator, root)?,
        Collective::AllReduce => Some(team.all_reduce(mine, operator)?),
        Collective::ReduceScatter => Some(team.reduce_scatter(source, operator)?),
        Collective::Scan => Some(team.scan(mine, operator)?),
        Collective::ExclusiveScan => team.exclusive_scan(mine, operator)?,
    };
    if let (Some(one), Some(place)) = (one, target.first_mut()) {
        *place = one;
    }
    Ok(())
}

fn add<const N: usize>(mut left: [f64; N], right: [f64; N]) -> [f64; N] {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort::{Job, sync_modes::SyncModes};

    #[test]
    fn values_of_every_length_arrive() {
        for len in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
            let results = Job::threads(3).without_wisdom().run(|pe| {
                let team = pe.world().with_sync(SyncModes::LOOSE);
                let data = vec![f64::from(team.rank().0 + 1); len];
                let on = |collective, len: usize, source: &[f64]| {
                    let mut target = vec![0.0; len];
                    call(&team, collective, source, &mut target, data.len()).map(|()| target)
                };
                assert_eq!(on(Collective::AllReduce, len, &data)?, vec![6.0; len]);
                assert_eq!(on(Collective::Broadcast, len, &data)?, vec![1.0; len]);
                let all = on(Collective::AllGather, 3 * len, &data)?;
                assert!(all.chunks(len).eq([vec![1.0; len], vec![2.0; len], vec![3.0; len]]));
                let mine = on(Collective::AllToAll, 3 * len, &all)?;
                assert_eq!(mine, vec![f64::from(team.rank().0 + 1); 3 * len]);
                on(Collective::Reduce, len, &data)
            });
            assert_eq!(results.unwrap()[0], vec![6.0; len]);
        }
    }
}
