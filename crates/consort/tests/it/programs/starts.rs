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

impl<B: Outcome> AnyRequest for Request<'_, B> {
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
fn awaited<B>(mut request: Request<'_, B>) -> Result<B> {
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
fn again<'p, T: Datum, B: Outcome + Send + 'static>(
    plan: Planned<'p, T, B>,
    source: Vec<T>,
) -> Result<Box<dyn AnyRequest + 'p>> {
    drop(plan.start(source.clone())?);
    Ok(Box::new(plan.start(source)?))
}

/// Starts a call on its own data.
pub(super) fn start<'p, T: Datum>(
    team: Team<'p>,
    part: Part<'_>,
    charge: Option<Payload>,
) -> Result<Box<dyn AnyRequest + 'p>> {
    if !part.call.collective.combines() {
        return start_moving::<T>(team, part);
    }
    if part.call.ordered {
        start_by::<T, _>(team, part, closure::<T>(charge))
    } else {
        start_by::<T, _>(team, part, T::Commutative::default())
    }
}

fn start_by<'p, T: Datum, O: Operator<T> + Clone + Send + 'static>(
    team: Team<'p>,
    part: Part<'_>,
    operator: O,
) -> Result<Box<dyn AnyRequest + 'p>> {
    let Call { collective, form, len, .. } = *part.call;
    let source = elements::<T>(&part.source(), part.given() * len);
    let root = part.call.root_rank(part.size);
    if form == Form::Planned {
        return match collective {
            Collective::Reduce => again(team.plan_reduce(len, operator, root)?, source),
            Collective::AllReduce => again(team.plan_all_reduce(len, operator)?, source),
            Collective::ReduceScatter => again(team.plan_reduce_scatter(len, operator)?, source),
            Collective::Scan => again(team.plan_scan(len, operator)?, source),
            Collective::ExclusiveScan => again(team.plan_exclusive_scan(len, operator)?, source),
            other => unreachable!("{other} combines nothing"),
        };
    }
    Ok(match collective {
        Collective::Reduce => Box::new(team.start_reduce(source, operator, root)?),
        Collective::AllReduce => Box::new(team.start_all_reduce(source, operator)?),
        Collective::ReduceScatter => Box::new(team.start_reduce_scatter(source, operator)?),
        Collective::Scan => Box::new(team.start_scan(source, operator)?),
        Collective::ExclusiveScan => Box::new(team.start_exclusive_scan(source, operator)?),
        other => unreachable!("{other} combines nothing"),
    })
}

fn start_moving<'p, T: Datum>(team: Team<'p>, part: Part<'_>) -> Result<Box<dyn AnyRequest + 'p>> {
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
            Collective::Broadcast => again(team.plan_broadcast(len, root)?, source),
            Collective::Scatter => again(team.plan_scatter(len, root)?, source),
            Collective::Gather => again(team.plan_gather(len, root)?, source),
            Collective::AllGather => again(team.plan_all_gather(len)?, source),
            Collective::AllToAll => again(team.plan_all_to_all(len)?, source),
            Collective::ScatterVector => {
                let given = blocks_of_root(part, &given);
                source.truncate(given.extent());
                again(team.plan_scatter_vector(given, from_root, root)?, source)
            }
            Collective::GatherVector => {
                let received = blocks_of_root(part, &received);
                again(team.plan_gather_vector(source.len(), received, root)?, source)
            }
            Collective::AllGatherVector => {
                again(team.plan_all_gather_vector(source.len(), blocks(&received, len))?, source)
            }
            Collective::AllToAllVector => {
                let (given, received) = (blocks(&given, len), blocks(&received, len));
                source.truncate(given.extent());
                again(team.plan_all_to_all_vector(given, received)?, source)
            }
            other => unreachable!("{other} combines"),
        };
    }
    Ok(match collective {
        Collective::Barrier => Box::new(team.start_barrier()?),
        Collective::Broadcast => Box::new(team.start_broadcast(source, root)?),
        Collective::Scatter => Box::new(team.start_scatter(source, len, root)?),
        Collective::Gather => Box::new(team.start_gather(source, root)?),
        Collective::AllGather => Box::new(team.start_all_gather(source)?),
        Collective::AllToAll if part.call.seed & 1 == 0 => {
            let target = elements::<T>(&part.blank(), part.received() * len);
            Box::new(team.start_all_to_all_into(source, target)?)
        }
        Collective::AllToAll => Box::new(team.start_all_to_all(source)?),
        Collective::ScatterVector => {
            let given = blocks_of_root(part, &given);
            Box::new(team.start_scatter_vector(source, given, from_root, root)?)
        }
        Collective::GatherVector => {
            Box::new(team.start_gather_vector(source, blocks_of_root(part, &received), root)?)
        }
        Collective::AllGatherVector => {
            Box::new(team.start_all_gather_vector(source, blocks(&received, len))?)
        }
        Collective::AllToAllVector => {
            let (given, received) = (blocks(&given, len), blocks(&received, len));
            Box::new(team.start_all_to_all_vector(source, given, received)?)
        }
        other => unreachable!("{other} combines"),
    })
}

/// Starts a call in symmetric memory.
pub(super) fn start_in_memory<'p, T: Datum>(
    team: Team<'p>,
    part: Part<'_>,
    (from, to): (&Symmetric<'p, T>, &Symmetric<'p, T>),
    charge: Option<Payload>,
) -> Result<Box<dyn AnyRequest + 'p>> {
    let (collective, root) = (part.call.collective, part.call.root_rank(part.size));
    Ok(Box::new(if part.call.ordered {
        team.start_symmetric(collective, from, to, closure::<T>(charge), root)?
    } else {
        team.start_symmetric(collective, from, to, T::Commutative::default(), root)?
    }))
}
