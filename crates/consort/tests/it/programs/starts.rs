//! Nonblocking calls, by every method that starts one, and the ways in which a request may end.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
    thread,
};

use consort::{
    Result, Symmetric, Team,
    nonblocking::{Planned, Request},
    ops::Operator,
    tune::Collective,
};

use super::{
    calls::{blocks, blocks_of_root, closure},
    elements::{Datum, bytes, elements},
    expect::Part,
    payloads::Payload,
    program::{Call, End, Form},
};

/// The number of times that a PE polls a call before it waits: a PE that only polls is not known to
/// wait, so nothing could notify it of mismatched calls.
const POLLS: u32 = 2000;

/// The result of a nonblocking call, as bytes.
pub(super) trait Outcome: Send {
    fn found(self) -> Option<Vec<u8>>;
}

impl Outcome for () {
    fn found(self) -> Option<Vec<u8>> {
        None
    }
}

impl<T: Datum> Outcome for Vec<T> {
    fn found(self) -> Option<Vec<u8>> {
        Some(bytes(&self))
    }
}

impl<T: Datum> Outcome for Option<Vec<T>> {
    fn found(self) -> Option<Vec<u8>> {
        self.map(|all| bytes(&all))
    }
}

/// Source and target.
impl<T: Datum> Outcome for (Vec<T>, Vec<T>) {
    fn found(self) -> Option<Vec<u8>> {
        self.1.found()
    }
}

/// A request for a call of any type.
pub(super) trait AnyRequest {
    /// Ends the request; `None` if nobody gets its result.
    fn end(self: Box<Self>, end: End) -> Result<Option<Option<Vec<u8>>>>;
}

impl<B: Outcome> AnyRequest for Request<B> {
    fn end(mut self: Box<Self>, end: End) -> Result<Option<Option<Vec<u8>>>> {
        let outcome = match end {
            End::Wait => self.wait()?,
            End::Test => {
                for _ in 0..POLLS {
                    if self.test()? {
                        break;
                    }
                    thread::yield_now();
                }
                self.wait()?
            }
            End::Await => awaited(*self)?,
            End::Drop => {
                drop(self);
                return Ok(None);
            }
            End::Forget => {
                #[expect(clippy::mem_forget, reason = "requests may be forgotten")]
                mem::forget(self);
                return Ok(None);
            }
        };
        Ok(Some(outcome.found()))
    }
}

/// Polls a request like an executor that never sleeps, up to a limit, and then waits.
fn awaited<B>(mut request: Request<B>) -> Result<B> {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS {
        match Pin::new(&mut request).poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::yield_now(),
        }
    }
    request.wait()
}

/// Starts a planned call twice, and drops the first request.
fn again<T: Datum, B: Outcome + Send + 'static>(
    plan: Planned<T, B>,
    source: Vec<T>,
) -> Result<Box<dyn AnyRequest>> {
    drop(plan.start(source.clone())?);
    Ok(Box::new(plan.start(source)?))
}

/// Starts a call on its own data.
pub(super) fn start<T: Datum>(
    team: Team,
    part: Part<'_>,
    charge: Option<Payload>,
) -> Result<Box<dyn AnyRequest>> {
    if !part.call.collective.combines() {
        return start_moving::<T>(&team, part);
    }
    if part.call.ordered {
        start_by::<T, _>(team, part, closure::<T>(charge))
    } else {
        start_by::<T, _>(team, part, T::Commutative::default())
    }
}

fn start_by<T: Datum, O: Operator<T> + Clone + Send + 'static>(
    team: Team,
    part: Part<'_>,
    operator: O,
) -> Result<Box<dyn AnyRequest>> {
    let Call { collective, form, len, .. } = *part.call;
    let source = elements::<T>(&part.source(), part.given() * len);
    let root = part.call.root_rank(part.size);
    if form == Form::Planned {
        return match collective {
            Collective::Reduce => again(team.plan(len).reduce(operator, root)?, source),
            Collective::AllReduce => again(team.plan(len).all_reduce(operator)?, source),
            Collective::ReduceScatter => again(team.plan(len).reduce_scatter(operator)?, source),
            Collective::Scan => again(team.plan(len).scan(operator)?, source),
            Collective::ExclusiveScan => again(team.plan(len).exclusive_scan(operator)?, source),
            other => unreachable!("{other} combines nothing"),
        };
    }
    Ok(match collective {
        Collective::Reduce => Box::new(team.start(source).reduce(operator, root)?),
        Collective::AllReduce => Box::new(team.start(source).all_reduce(operator)?),
        Collective::ReduceScatter => Box::new(team.start(source).reduce_scatter(operator)?),
        Collective::Scan => Box::new(team.start(source).scan(operator)?),
        Collective::ExclusiveScan => Box::new(team.start(source).exclusive_scan(operator)?),
        other => unreachable!("{other} combines nothing"),
    })
}

fn start_moving<T: Datum>(team: &Team, part: Part<'_>) -> Result<Box<dyn AnyRequest>> {
    let Call { collective, form, len, .. } = *part.call;
    let mut source = elements::<T>(&part.source(), part.given() * len);
    let (root, root_at) = (part.call.root_rank(part.size), part.call.root_of(part.size));
    let [given, received] = part.counts();
    let (mine, from_root) = (part.count(part.me, root_at), part.count(root_at, part.me));
    if collective == Collective::Broadcast && !part.is_root() {
        source = vec![T::zeroed(); len];
    }
    if matches!(collective, Collective::GatherVector | Collective::AllGatherVector) {
        source.truncate(mine);
    }
    if form == Form::Planned {
        return match collective {
            Collective::Barrier => {
                let plan = team.plan_barrier()?;
                drop(plan.start()?);
                Ok(Box::new(plan.start()?))
            }
            Collective::Broadcast => again(team.plan(len).broadcast(root)?, source),
            Collective::Scatter => again(team.plan(len).scatter(root)?, source),
            Collective::Gather => again(team.plan(len).gather(root)?, source),
            Collective::AllGather => again(team.plan(len).all_gather()?, source),
            Collective::AllToAll => again(team.plan(len).all_to_all()?, source),
            Collective::ScatterVector => {
                let given = blocks_of_root(part, &given);
                source.truncate(given.extent());
                again(team.plan(from_root).with_counts(&given).scatter(root)?, source)
            }
            Collective::GatherVector => {
                let received = blocks_of_root(part, &received);
                again(team.plan(source.len()).with_counts(&received).gather(root)?, source)
            }
            Collective::AllGatherVector => again(
                team.plan(source.len()).with_counts(&blocks(&received, len)).all_gather()?,
                source,
            ),
            Collective::AllToAllVector => {
                let (given, received) = (blocks(&given, len), blocks(&received, len));
                source.truncate(given.extent());
                again(team.plan(0).with_counts((&given, &received)).all_to_all()?, source)
            }
            other => unreachable!("{other} combines"),
        };
    }
    Ok(match collective {
        Collective::Barrier => Box::new(team.start_barrier()?),
        Collective::Broadcast => Box::new(team.start(source).broadcast(root)?),
        Collective::Scatter => Box::new(team.start(source).with_len(len).scatter(root)?),
        Collective::Gather => Box::new(team.start(source).gather(root)?),
        Collective::AllGather => Box::new(team.start(source).all_gather()?),
        Collective::AllToAll if part.call.seed & 1 == 0 => {
            let target = elements::<T>(&part.blank(), part.received() * len);
            Box::new(team.start_into(source, target).all_to_all()?)
        }
        Collective::AllToAll => Box::new(team.start(source).all_to_all()?),
        Collective::ScatterVector => {
            let given = blocks_of_root(part, &given);
            Box::new(team.start(source).with_len(from_root).with_counts(&given).scatter(root)?)
        }
        Collective::GatherVector => {
            Box::new(team.start(source).with_counts(&blocks_of_root(part, &received)).gather(root)?)
        }
        Collective::AllGatherVector => {
            Box::new(team.start(source).with_counts(&blocks(&received, len)).all_gather()?)
        }
        Collective::AllToAllVector => {
            let (given, received) = (blocks(&given, len), blocks(&received, len));
            Box::new(team.start(source).with_counts((&given, &received)).all_to_all()?)
        }
        other => unreachable!("{other} combines"),
    })
}

/// Starts a call in symmetric memory.
pub(super) fn start_in_memory<T: Datum>(
    team: Team,
    part: Part<'_>,
    (from, to): (&Symmetric<T>, &Symmetric<T>),
    charge: Option<Payload>,
) -> Result<Box<dyn AnyRequest>> {
    let (collective, root) = (part.call.collective, part.call.root_rank(part.size));
    let to = if collective == Collective::Broadcast { from } else { to };
    Ok(Box::new(if part.call.ordered {
        team.start_symmetric(from, to).any(collective, closure::<T>(charge), root)?
    } else {
        team.start_symmetric(from, to).any(collective, T::Commutative::default(), root)?
    }))
}
