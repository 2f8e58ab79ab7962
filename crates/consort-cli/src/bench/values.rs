//! Broadcasts and reductions of values: a call takes them along, so that they may be Loose without
//! symmetric memory.
//!
//! A value is an array of doubles of one of a few lengths. An array has no sum of the library's:
//! longer ones than one double are added up by a closure, whose class is ordered.

use consort::{Pod, Query, Rank, Result, Sum, Team};
use consort_fabric::OperatorClass;

/// Calls a function with the length as a constant, and does nothing for any other length.
macro_rules! with_length {
    ($len:expr, $function:ident($($argument:expr),*)) => {
        with_length!($len, $function($($argument),*), 2 4 8 16 32 64 128 256 512)
    };
    ($len:expr, $function:ident $arguments:tt, $($known:literal)*) => {
        match $len {
            $($known => with_length!(@call $function $known $arguments),)*
            _ => Ok(()),
        }
    };
    (@call $function:ident $known:literal ($($argument:expr),*)) => {
        $function::<$known>($($argument),*)
    };
}

/// The longest value, in bytes.
const MOST_BYTES: u64 = 4096;

/// Whether a query about private buffers can be measured with values.
pub(crate) fn can_ask(query: &Query) -> bool {
    let has_sum = query.bytes == 8 || query.operator == OperatorClass::Ordered;
    (8..=MOST_BYTES).contains(&query.bytes)
        && query.bytes.is_power_of_two()
        && (!query.collective.combines() || has_sum)
}

/// Broadcasts the root's `data`.
pub(crate) fn broadcast(team: &Team<'_>, data: &mut [f64]) -> Result<()> {
    if let [value] = data {
        *value = team.broadcast(*value, Rank(0))?;
        return Ok(());
    }
    with_length!(data.len(), broadcast_array(team, data))
}

/// Adds everyone's `source` into the root's `target`.
pub(crate) fn reduce(team: &Team<'_>, source: &[f64], target: &mut [f64]) -> Result<()> {
    if let ([value], [sum]) = (source, &mut *target) {
        *sum = team.reduce(*value, Sum, Rank(0))?.unwrap_or(*sum);
        return Ok(());
    }
    with_length!(source.len(), reduce_array(team, source, target))
}

/// Adds everyone's `source` into everyone's `target`.
pub(crate) fn all_reduce(team: &Team<'_>, source: &[f64], target: &mut [f64]) -> Result<()> {
    if let ([value], [sum]) = (source, &mut *target) {
        *sum = team.all_reduce(*value, Sum)?;
        return Ok(());
    }
    with_length!(source.len(), all_reduce_array(team, source, target))
}

fn broadcast_array<const N: usize>(team: &Team<'_>, data: &mut [f64]) -> Result<()>
where
    [f64; N]: Pod,
{
    let value: [f64; N] = array(data);
    data.copy_from_slice(&team.broadcast(value, Rank(0))?);
    Ok(())
}

fn reduce_array<const N: usize>(team: &Team<'_>, source: &[f64], target: &mut [f64]) -> Result<()>
where
    [f64; N]: Pod,
{
    if let Some(sum) = team.reduce(array(source), add::<N>, Rank(0))? {
        target.copy_from_slice(&sum);
    }
    Ok(())
}

fn all_reduce_array<const N: usize>(
    team: &Team<'_>,
    source: &[f64],
    target: &mut [f64],
) -> Result<()>
where
    [f64; N]: Pod,
{
    target.copy_from_slice(&team.all_reduce(array(source), add::<N>)?);
    Ok(())
}

fn add<const N: usize>(mut left: [f64; N], right: [f64; N]) -> [f64; N] {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    left
}

fn array<const N: usize>(data: &[f64]) -> [f64; N] {
    let mut array = [0.0; N];
    array.copy_from_slice(data);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort::{Pes, Sync};

    #[test]
    fn values_of_every_length_arrive() {
        for len in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
            let results = Pes::threads(3).without_wisdom().run(|pe| {
                let team = pe.world().with(Sync::LOOSE);
                let mut data = vec![f64::from(team.rank().0 + 1); len];
                let mut sum = vec![0.0; len];
                reduce(&team, &data, &mut sum)?;
                let mut sums = vec![0.0; len];
                all_reduce(&team, &data, &mut sums)?;
                broadcast(&team, &mut data)?;
                assert_eq!(sums, vec![6.0; len]);
                Ok((data, sum))
            });
            let results = results.unwrap();
            assert_eq!(results[0].1.1, vec![6.0; len]);
            assert!(results.iter().all(|(_, (data, _))| *data == vec![1.0; len]));
        }
    }
}
