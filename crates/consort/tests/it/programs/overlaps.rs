//! Calls on borrowed slices, within a scope.

use consort::{
    Error, Rank, Result, Team,
    error::{CallError, PlanError},
    nonblocking::{Overlap, Source},
    ops::Operator,
    tune::Collective,
};

use super::{
    calls::closure,
    elements::{Datum, bytes, elements},
    expect::Part,
    payloads::Payload,
    program::End,
    starts::{AnyRequest, Outcome},
};

/// The way in which the body of a scope ends, if it does not return normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    Panic(Payload),
    Error,
}

/// The contents of a scope.
pub(super) struct Scope<'c> {
    pub(super) parts: Vec<Part<'c>>,
    pub(super) ends: &'c [End],
    pub(super) has_barrier: bool,
    pub(super) breach: Option<Breach>,
    pub(super) charge: Option<Payload>,
}

/// Starts the calls of a scope and ends their requests. Returns the contents of their targets after
/// the scope, with `None` for calls that no algorithm serves.
pub(super) fn overlap<T: Datum>(team: &Team, scope: &Scope<'_>) -> Result<Vec<Option<Vec<u8>>>> {
    let mut buffers: Vec<_> = scope.parts.iter().map(buffers::<T>).collect();
    let borrowed: Vec<_> = scope.parts.iter().zip(&mut buffers).collect();
    let served = team.overlap(|overlap| {
        let mut requests = Vec::new();
        for (part, (source, target)) in borrowed {
            requests.push(match start(overlap, *part, source, target, scope.charge) {
                Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => None,
                other => Some(other?),
            });
        }
        let served: Vec<_> = requests.iter().map(Option::is_some).collect();
        if scope.has_barrier {
            team.barrier()?;
        }
        match scope.breach {
            Some(Breach::Panic(payload)) => payload.throw(),
            Some(Breach::Error) => return Err(Error::Wisdom("an error on purpose".to_owned())),
            None => {}
        }
        // In reverse order.
        for (request, end) in requests.into_iter().zip(scope.ends).rev() {
            if let Some(request) = request {
                request.end(*end)?;
            }
        }
        Ok(served)
    })?;
    let found = buffers.into_iter().zip(served);
    Ok(found.map(|((_, target), is_served)| is_served.then(|| bytes(&target))).collect())
}

/// Returns a PE's source and target; a broadcast uses the target.
fn buffers<T: Datum>(part: &Part<'_>) -> (Vec<T>, Vec<T>) {
    let len = part.call.len;
    let source = elements(&part.source(), part.given() * len);
    (source, elements(&part.blank(), part.received() * len))
}

fn start<'s, T: Datum>(
    overlap: &'s Overlap<'s, '_>,
    part: Part<'_>,
    source: &'s mut Vec<T>,
    target: &'s mut Vec<T>,
    charge: Option<Payload>,
) -> Result<Box<dyn AnyRequest + 's>> {
    let root = part.call.root_rank(part.size);
    if part.call.collective == Collective::Broadcast {
        let data = if part.is_root() { source } else { target };
        return Ok(Box::new(overlap.start_in_place(data).broadcast(root)?));
    }
    if part.call.ordered {
        start_by(overlap, part, (source, target), closure::<T>(charge), root)
    } else {
        start_by(overlap, part, (source, target), T::Commutative::default(), root)
    }
}

/// Starts half of the calls by the method of their name, and half with exclusive sources.
fn start_by<'s, T: Datum, O: Operator<T> + Send + 's>(
    overlap: &'s Overlap<'s, '_>,
    part: Part<'_>,
    (source, target): (&'s mut Vec<T>, &'s mut [T]),
    operator: O,
    root: Rank,
) -> Result<Box<dyn AnyRequest + 's>> {
    let source_is_exclusive = part.call.seed & 2 == 0;
    if source_is_exclusive {
        started(overlap, part, (source, target), operator, root)
    } else {
        started(overlap, part, (&*source, target), operator, root)
    }
}

fn started<'s, T: Datum, S: Source<T> + Outcome + 's, O: Operator<T> + Send + 's>(
    scope: &'s Overlap<'s, '_>,
    part: Part<'_>,
    (source, target): (S, &'s mut [T]),
    operator: O,
    root: Rank,
) -> Result<Box<dyn AnyRequest + 's>> {
    let call = part.call;
    if call.seed & 1 == 1 {
        let request = scope.start_into(source, target).any(call.collective, operator, root)?;
        return Ok(Box::new(request));
    }
    Ok(Box::new(match call.collective {
        Collective::Scatter => scope.start_into(source, target).scatter(root)?,
        Collective::Gather => scope.start_into(source, target).gather(root)?,
        Collective::AllGather => scope.start_into(source, target).all_gather()?,
        Collective::AllToAll => scope.start_into(source, target).all_to_all()?,
        Collective::Reduce => scope.start_into(source, target).reduce(operator, root)?,
        Collective::AllReduce => scope.start_into(source, target).all_reduce(operator)?,
        Collective::ReduceScatter => scope.start_into(source, target).reduce_scatter(operator)?,
        Collective::Scan => scope.start_into(source, target).scan(operator)?,
        Collective::ExclusiveScan => scope.start_into(source, target).exclusive_scan(operator)?,
        other => scope.start_into(source, target).any(other, operator, root)?,
    }))
}

/// Returned buffers may be changed immediately: the source is, and the target has the result.
impl<S: Outcome, T: Datum> Outcome for (S, &mut [T]) {
    fn found(self) -> Option<Vec<u8>> {
        self.0.found();
        None
    }
}

impl<T: Datum> Outcome for &mut Vec<T> {
    fn found(self) -> Option<Vec<u8>> {
        self.fill(T::zeroed());
        None
    }
}

impl<T: Datum> Outcome for &Vec<T> {
    fn found(self) -> Option<Vec<u8>> {
        None
    }
}

/// The data of a broadcast, which is also checked.
impl<T: Datum> Outcome for &mut [T] {
    fn found(self) -> Option<Vec<u8>> {
        None
    }
}
