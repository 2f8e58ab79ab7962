//! Blocking calls, by every method that a collective has.

use consort::{Displacements, Result, Symmetric, Team, ops::Operator, tune::Collective};

use super::{
    elements::{Datum, bytes, elements},
    expect::Part,
    payloads::Payload,
    program::{Call, Form},
};
use crate::typed;

/// Returns a closure, which counts as only associative; it may panic instead of combining.
pub(super) fn closure<T: Datum>(
    charge: Option<Payload>,
) -> impl Operator<T> + Clone + Send + 'static {
    move |left, right| {
        if let Some(payload) = charge {
            payload.throw();
        }
        T::composed(left, right)
    }
}

/// Returns blocks of these lengths, which begin every `len` elements.
pub(super) fn blocks(counts: &[usize], len: usize) -> Displacements {
    let displacements: Vec<_> = (0..counts.len()).map(|at| at * len).collect();
    Displacements::at(counts, &displacements).expect("short")
}

/// Returns the blocks of the root, and no blocks on others.
pub(super) fn blocks_of_root(part: Part<'_>, counts: &[usize]) -> Displacements {
    if part.is_root() { blocks(counts, part.call.len) } else { Displacements::default() }
}

/// Makes a call on its own data, and returns the final content of its target.
pub(super) fn call<T: Datum>(
    team: &Team,
    part: Part<'_>,
    charge: Option<Payload>,
) -> Result<Option<Vec<u8>>> {
    if part.call.ordered {
        call_by::<T, _>(team, part, closure::<T>(charge))
    } else {
        call_by::<T, _>(team, part, T::Commutative::default())
    }
}

fn call_by<T: Datum, O: Operator<T>>(
    team: &Team,
    part: Part<'_>,
    operator: O,
) -> Result<Option<Vec<u8>>> {
    let Call { collective, len, form, uneven, .. } = *part.call;
    let root = part.call.root_rank(part.size);
    let source = elements::<T>(&part.source(), part.given() * len);
    let mut target = elements::<T>(&part.blank(), part.received() * len);
    match form {
        Form::Values if collective.is_vector() => {
            return Ok(vector_values(team, part, &source)?.map(|all| bytes(&all)));
        }
        Form::Values => {
            let found = typed::values(team, collective, &source, operator, root)?;
            return Ok(found.map(|all| bytes(&all)));
        }
        Form::InPlace => in_place(team, collective, &source, &mut target, operator, root)?,
        Form::Generic => team.slices(&source, &mut target).any(collective, operator, root)?,
        _ if uneven => vector_slices(team, part, &source, &mut target)?,
        _ => typed::slices(team, collective, &source, &mut target, operator, root)?,
    }
    Ok(Some(bytes(&target)))
}

/// Makes a call in place if possible.
fn in_place<T: Datum, O: Operator<T>>(
    team: &Team,
    collective: Collective,
    source: &[T],
    target: &mut [T],
    operator: O,
    root: consort::Rank,
) -> Result<()> {
    match collective {
        Collective::AllReduce | Collective::Reduce | Collective::Scan => {
            let mut data = source.to_vec();
            typed::in_place(team, collective, &mut data, operator, root)?;
            if collective != Collective::Reduce || team.rank() == root {
                target.copy_from_slice(&data);
            } else {
                assert_eq!(bytes(&data), bytes(source), "only the root's data is replaced");
            }
            Ok(())
        }
        Collective::AllToAll => {
            target.copy_from_slice(source);
            team.in_place(target).all_to_all()
        }
        Collective::AllGather => {
            target[team.rank().index() * source.len()..][..source.len()].copy_from_slice(source);
            team.in_place(target).all_gather()
        }
        _ => typed::slices(team, collective, source, target, operator, root),
    }
}

fn vector_values<T: Datum>(team: &Team, part: Part<'_>, source: &[T]) -> Result<Option<Vec<T>>> {
    let Call { collective, len, .. } = *part.call;
    let (size, root) = (part.size, part.call.root_rank(part.size));
    let [given, _] = part.counts();
    let mine = part.count(part.me, part.call.root_of(size));
    Ok(match collective {
        Collective::ScatterVector => {
            Some(team.values(source).uneven().scatter(&blocks_of_root(part, &given), root)?)
        }
        Collective::GatherVector => {
            team.values(&source[..mine]).uneven().gather(root)?.map(|(all, _)| all)
        }
        Collective::AllGatherVector => Some(team.values(&source[..mine]).uneven().all_gather()?.0),
        _ => Some(team.values(source).uneven().all_to_all(&blocks(&given, len))?.0),
    })
}

fn vector_slices<T: Datum>(
    team: &Team,
    part: Part<'_>,
    source: &[T],
    target: &mut [T],
) -> Result<()> {
    let Call { collective, len, .. } = *part.call;
    let (root, root_at) = (part.call.root_rank(part.size), part.call.root_of(part.size));
    let [given, received] = part.counts();
    let (mine, from_root) = (part.count(part.me, root_at), part.count(root_at, part.me));
    match collective {
        Collective::ScatterVector => {
            let given = blocks_of_root(part, &given);
            team.slices(source, &mut target[..from_root]).with_counts(&given).scatter(root)
        }
        Collective::GatherVector => {
            let received = blocks_of_root(part, &received);
            team.slices(&source[..mine], target).with_counts(&received).gather(root)
        }
        Collective::AllGatherVector => {
            team.slices(&source[..mine], target).with_counts(&blocks(&received, len)).all_gather()
        }
        _ => {
            let received = blocks(&received, len);
            team.slices(source, target).with_counts((&blocks(&given, len), &received)).all_to_all()
        }
    }
}

/// Makes a call in symmetric memory.
pub(super) fn call_in_memory<T: Datum>(
    team: &Team,
    part: Part<'_>,
    (from, to): (&Symmetric<T>, &Symmetric<T>),
    charge: Option<Payload>,
) -> Result<()> {
    if part.call.uneven {
        vector_memory(team, part, from, to)
    } else if part.call.ordered {
        call_in_memory_by(team, part, from, to, closure::<T>(charge))
    } else {
        call_in_memory_by(team, part, from, to, T::Commutative::default())
    }
}

fn call_in_memory_by<T: Datum, O: Operator<T>>(
    team: &Team,
    part: Part<'_>,
    from: &Symmetric<T>,
    to: &Symmetric<T>,
    operator: O,
) -> Result<()> {
    let (collective, root) = (part.call.collective, part.call.root_rank(part.size));
    if let Form::GenericMemory { .. } = part.call.form {
        let to = if collective == Collective::Broadcast { from } else { to };
        team.in_symmetric(from, to).any(collective, operator, root)
    } else {
        typed::symmetric(team, collective, from, to, operator, root)
    }
}

fn vector_memory<T: Datum>(
    team: &Team,
    part: Part<'_>,
    from: &Symmetric<T>,
    to: &Symmetric<T>,
) -> Result<()> {
    let Call { collective, len, .. } = *part.call;
    let (root, root_at) = (part.call.root_rank(part.size), part.call.root_of(part.size));
    let [given, received] = part.counts();
    let (mine, from_root) = (part.count(part.me, root_at), part.count(root_at, part.me));
    match collective {
        Collective::ScatterVector => {
            let given = blocks_of_root(part, &given);
            team.in_symmetric(from, to).with_len(from_root).with_counts(&given).scatter(root)
        }
        Collective::GatherVector => {
            let received = blocks_of_root(part, &received);
            team.in_symmetric(from, to).with_len(mine).with_counts(&received).gather(root)
        }
        Collective::AllGatherVector => team
            .in_symmetric(from, to)
            .with_len(mine)
            .with_counts(&blocks(&received, len))
            .all_gather(),
        _ => {
            let received = blocks(&received, len);
            team.in_symmetric(from, to).with_counts((&blocks(&given, len), &received)).all_to_all()
        }
    }
}
