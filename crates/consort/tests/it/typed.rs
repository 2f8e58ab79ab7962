//! Any collective on slices, on symmetric memory and on single elements, by the method of its name.

use consort::{Displacements, Pod, Rank, Result, Symmetric, Team, ops::Operator, tune::Collective};

/// Returns blocks of equal length for each PE, in a buffer of `len` elements.
pub(crate) fn blocks(team: &Team, len: usize) -> Displacements {
    let pes = team.size();
    Displacements::new(&vec![len / pes; pes]).expect("short")
}

/// Makes a call on slices; a PE that contributes or receives nothing may pass an empty one.
pub(crate) fn slices<T: Pod, O: Operator<T>>(
    team: &Team,
    collective: Collective,
    source: &[T],
    target: &mut [T],
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Barrier => team.barrier(),
        Collective::Broadcast if team.rank() == root => {
            team.in_place(&mut source.to_vec()).broadcast(root)
        }
        Collective::Broadcast => team.in_place(target).broadcast(root),
        Collective::Scatter => team.slices(source, target).scatter(root),
        Collective::Gather => team.slices(source, target).gather(root),
        Collective::AllGather => team.slices(source, target).all_gather(),
        Collective::AllToAll => team.slices(source, target).all_to_all(),
        Collective::Reduce => team.slices(source, target).reduce(operator, root),
        Collective::AllReduce => team.slices(source, target).all_reduce(operator),
        Collective::ReduceScatter => team.slices(source, target).reduce_scatter(operator),
        Collective::Scan => team.slices(source, target).scan(operator),
        Collective::ExclusiveScan => team.slices(source, target).exclusive_scan(operator),
        Collective::ScatterVector => {
            team.slices(source, target).with_counts(&blocks(team, source.len())).scatter(root)
        }
        Collective::GatherVector => {
            let blocks = blocks(team, target.len());
            team.slices(source, target).with_counts(&blocks).gather(root)
        }
        Collective::AllGatherVector => {
            let blocks = blocks(team, target.len());
            team.slices(source, target).with_counts(&blocks).all_gather()
        }
        Collective::AllToAllVector => {
            let [given, received] = [source.len(), target.len()].map(|len| blocks(team, len));
            team.slices(source, target).with_counts((&given, &received)).all_to_all()
        }
    }
}

/// Makes a call in place; a PE that receives nothing passes its contribution.
pub(crate) fn in_place<T: Pod, O: Operator<T>>(
    team: &Team,
    collective: Collective,
    data: &mut [T],
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Reduce => team.in_place(data).reduce(operator, root),
        Collective::AllReduce => team.in_place(data).all_reduce(operator),
        Collective::Scan => team.in_place(data).scan(operator),
        _ => unreachable!("{collective} has no method in place"),
    }
}

/// Makes a call in symmetric memory; a broadcast uses the source.
pub(crate) fn symmetric<T: Pod, O: Operator<T>>(
    team: &Team,
    collective: Collective,
    source: &Symmetric<T>,
    target: &Symmetric<T>,
    operator: O,
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::Barrier => team.barrier(),
        Collective::Broadcast => team.in_symmetric(source, source).broadcast(root),
        Collective::Scatter => team.in_symmetric(source, target).scatter(root),
        Collective::Gather => team.in_symmetric(source, target).gather(root),
        Collective::AllGather => team.in_symmetric(source, target).all_gather(),
        Collective::AllToAll => team.in_symmetric(source, target).all_to_all(),
        Collective::Reduce => team.in_symmetric(source, target).reduce(operator, root),
        Collective::AllReduce => team.in_symmetric(source, target).all_reduce(operator),
        Collective::ReduceScatter => team.in_symmetric(source, target).reduce_scatter(operator),
        Collective::Scan => team.in_symmetric(source, target).scan(operator),
        Collective::ExclusiveScan => team.in_symmetric(source, target).exclusive_scan(operator),
        Collective::ScatterVector => {
            let given = blocks(team, source.len());
            team.in_symmetric(source, target)
                .with_len(target.len())
                .with_counts(&given)
                .scatter(root)
        }
        Collective::GatherVector => {
            let received = blocks(team, target.len());
            team.in_symmetric(source, target)
                .with_len(source.len())
                .with_counts(&received)
                .gather(root)
        }
        Collective::AllGatherVector => {
            let received = blocks(team, target.len());
            team.in_symmetric(source, target)
                .with_len(source.len())
                .with_counts(&received)
                .all_gather()
        }
        Collective::AllToAllVector => {
            let [given, received] = [source.len(), target.len()].map(|len| blocks(team, len));
            team.in_symmetric(source, target).with_counts((&given, &received)).all_to_all()
        }
    }
}

/// Makes a call on single elements, one per block; returns the result, if any.
pub(crate) fn values<T: Pod, O: Operator<T>>(
    team: &Team,
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
            Some(team.values(source).uneven().scatter(&blocks(team, source.len()), root)?)
        }
        Collective::GatherVector => team.values(&[mine]).uneven().gather(root)?.map(|(all, _)| all),
        Collective::AllGatherVector => Some(team.values(&[mine]).uneven().all_gather()?.0),
        Collective::AllToAllVector => {
            Some(team.values(source).uneven().all_to_all(&blocks(team, source.len()))?.0)
        }
    })
}
