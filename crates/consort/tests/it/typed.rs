//! Any collective on slices, on symmetric memory and on single elements, by the method of its name.

use consort::{Displacements, Pod, Rank, Result, Symmetric, Team, ops::Operator, tune::Collective};

/// Returns blocks of equal length for each PE, in a buffer of `len` elements.
pub(crate) fn blocks(team: Team<'_>, len: usize) -> Displacements {
    let pes = team.size();
    Displacements::new(&vec![len / pes; pes]).expect("short")
}

/// Makes a call on slices; a PE that contributes or receives nothing may pass an empty one.
pub(crate) fn slices<T: Pod, O: Operator<T>>(
    team: Team<'_>,
    collective: Collective,
    source: &[T],
    target: &mut [T],
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Barrier => team.barrier(),
        Collective::Broadcast if team.rank() == root => {
            team.broadcast_slice(&mut source.to_vec(), root)
        }
        Collective::Broadcast => team.broadcast_slice(target, root),
        Collective::Scatter => team.scatter_slice(source, target, root),
        Collective::Gather => team.gather_slice(source, target, root),
        Collective::AllGather => team.all_gather_slice(source, target),
        Collective::AllToAll => team.all_to_all_slice(source, target),
        Collective::Reduce => team.reduce_slice(source, target, operator, root),
        Collective::AllReduce => team.all_reduce_slice(source, target, operator),
        Collective::ReduceScatter => team.reduce_scatter_slice(source, target, operator),
        Collective::Scan => team.scan_slice(source, target, operator),
        Collective::ExclusiveScan => team.exclusive_scan_slice(source, target, operator),
        Collective::ScatterVector => {
            team.scatter_vector_slice(source, &blocks(team, source.len()), target, root)
        }
        Collective::GatherVector => {
            team.gather_vector_slice(source, target, &blocks(team, target.len()), root)
        }
        Collective::AllGatherVector => {
            team.all_gather_vector_slice(source, target, &blocks(team, target.len()))
        }
        Collective::AllToAllVector => {
            let [given, received] = [source.len(), target.len()].map(|len| blocks(team, len));
            team.all_to_all_vector_slice(source, &given, target, &received)
        }
    }
}

/// Makes a call in place; a PE that receives nothing passes its contribution.
pub(crate) fn in_place<T: Pod, O: Operator<T>>(
    team: Team<'_>,
    collective: Collective,
    data: &mut [T],
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Reduce => team.reduce_in_place(data, operator, root),
        Collective::AllReduce => team.all_reduce_in_place(data, operator),
        Collective::Scan => team.scan_in_place(data, operator),
        _ => unreachable!("{collective} has no method in place"),
    }
}

/// Makes a call in symmetric memory; a broadcast uses the source.
pub(crate) fn symmetric<T: Pod, O: Operator<T>>(
    team: Team<'_>,
    collective: Collective,
    source: &Symmetric<'_, T>,
    target: &Symmetric<'_, T>,
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Barrier => team.barrier(),
        Collective::Broadcast => team.broadcast_symmetric(source, root),
        Collective::Scatter => team.scatter_symmetric(source, target, root),
        Collective::Gather => team.gather_symmetric(source, target, root),
        Collective::AllGather => team.all_gather_symmetric(source, target),
        Collective::AllToAll => team.all_to_all_symmetric(source, target),
        Collective::Reduce => team.reduce_symmetric(source, target, operator, root),
        Collective::AllReduce => team.all_reduce_symmetric(source, target, operator),
        Collective::ReduceScatter => team.reduce_scatter_symmetric(source, target, operator),
        Collective::Scan => team.scan_symmetric(source, target, operator),
        Collective::ExclusiveScan => team.exclusive_scan_symmetric(source, target, operator),
        Collective::ScatterVector => {
            let given = blocks(team, source.len());
            team.scatter_vector_symmetric(source, &given, target, target.len(), root)
        }
        Collective::GatherVector => {
            let received = blocks(team, target.len());
            team.gather_vector_symmetric(source, source.len(), target, &received, root)
        }
        Collective::AllGatherVector => {
            let received = blocks(team, target.len());
            team.all_gather_vector_symmetric(source, source.len(), target, &received)
        }
        Collective::AllToAllVector => {
            let [given, received] = [source.len(), target.len()].map(|len| blocks(team, len));
            team.all_to_all_vector_symmetric(source, &given, target, &received)
        }
    }
}

/// Makes a call on single elements, one per block; returns the result, if any.
pub(crate) fn values<T: Pod, O: Operator<T>>(
    team: Team<'_>,
    collective: Collective,
    source: &[T],
    operator: O,
    root: Rank,
) -> Result<Option<Vec<T>>> {
    let one = |value: T| Some(vec![value]);
    let mine = source.first().copied().unwrap_or(T::zeroed());
    Ok(match collective {
        Collective::Barrier => team.barrier().map(|()| None)?,
        Collective::Broadcast => one(team.broadcast(mine, root)?).filter(|_| team.rank() != root),
        Collective::Scatter => one(team.scatter(source, root)?),
        Collective::Gather => team.gather(mine, root)?,
        Collective::AllGather => Some(team.all_gather(mine)?),
        Collective::AllToAll => Some(team.all_to_all(source)?),
        Collective::Reduce => team.reduce(mine, operator, root)?.and_then(one),
        Collective::AllReduce => one(team.all_reduce(mine, operator)?),
        Collective::ReduceScatter => one(team.reduce_scatter(source, operator)?),
        Collective::Scan => one(team.scan(mine, operator)?),
        Collective::ExclusiveScan => team.exclusive_scan(mine, operator)?.and_then(one),
        Collective::ScatterVector => {
            Some(team.scatter_vector(source, &blocks(team, source.len()), root)?)
        }
        Collective::GatherVector => team.gather_vector(&[mine], root)?.map(|(all, _)| all),
        Collective::AllGatherVector => Some(team.all_gather_vector(&[mine])?.0),
        Collective::AllToAllVector => {
            Some(team.all_to_all_vector(source, &blocks(team, source.len()))?.0)
        }
    })
}
