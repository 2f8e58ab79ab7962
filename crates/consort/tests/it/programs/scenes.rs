//! Operations that only make sense together: race-free one-sided operations, asynchronous
//! broadcasts, and many successive calls. A scene allocates its own memory, and drops this memory
//! when it ends.

use std::mem;

use consort::{
    Error, Rank, Team,
    error::CallError,
    ops::Sum,
    symmetric::{Signal, Until},
};
use consort_collectives::PlanError;
use consort_conformance::data::Random;

use super::{calls::closure, elements::Datum, messages, payloads::Payload, program::Scene};

/// The reason why a step failed.
#[derive(Debug)]
pub(super) enum Trouble {
    Error(Error),
    /// A description of wrong data.
    Wrong(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(super) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Trouble> {
    if holds { Ok(()) } else { Err(Trouble::Wrong(what())) }
}

pub(super) fn words(seed: u64, rank: Rank, len: usize) -> Vec<u64> {
    let mut random = Random(seed ^ u64::from(rank.0) << 48);
    (0..len).map(|_| random.next_word()).collect()
}

/// The action of a PE in the middle of a scene, instead of continuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Fail,
    Throw(Payload),
    /// Neither closes asynchronous broadcasts nor drops them.
    Forget,
}

/// Runs the action in the middle of a scene.
pub(super) fn middle(cut: Option<Cut>) -> Result<(), Trouble> {
    match cut {
        Some(Cut::Fail) => Err(Error::Wisdom("an error on purpose".to_owned()).into()),
        Some(Cut::Throw(payload)) => payload.throw(),
        Some(Cut::Forget) | None => Ok(()),
    }
}

/// Runs a scene.
pub(super) fn play(
    team: &Team,
    scene: Scene,
    seed: u64,
    heap_bytes: usize,
    cut: Option<Cut>,
) -> Result<(), Trouble> {
    let played = match scene {
        Scene::Puts => puts(team, seed, cut),
        Scene::Signals => signals(team, seed, cut),
        Scene::Atomics => atomics(team, seed, cut),
        Scene::Counted => counted(team, seed, cut),
        Scene::AsyncBroadcast => async_broadcast(team, seed, cut),
        Scene::Churn => churn(team, seed, heap_bytes, cut),
        Scene::Repeat => repeat(team, seed, cut),
        Scene::Burst => burst(team, seed, cut),
        Scene::Messages => messages::play(team, seed, cut),
    };
    // A PE also departs if the forced algorithm could not serve an earlier call.
    if let Err(Trouble::Error(Error::Call(CallError::Plan(PlanError::Incapable { .. })))) = played {
        middle(cut)?;
    }
    played
}

fn length(seed: u64) -> usize {
    *Random(seed).pick(&[0, 1, 1, 7, 8, 100, 1500])
}

fn puts(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let (me, len) = (team.rank(), length(seed));
    let memory = team.symmetric::<u64>(len)?;
    memory.put(team.right(), 0, &words(seed, me, len))?;
    middle(cut)?;
    team.barrier()?;
    let mut found = vec![0; len];
    memory.get(me, 0, &mut found)?;
    let left = words(seed, team.left(), len);
    ensure(found == left, || format!("what PE {} put", team.left()))?;
    memory.get_combine(team.right(), 0, &mut found, closure(None))?;
    let mine = words(seed, me, len);
    let both: Vec<_> = left.iter().zip(&mine).map(|(&a, &b)| u64::composed(a, b)).collect();
    ensure(found == both, || "the combination differs from the data that get returned".to_owned())
}

fn signals(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    const ROUNDS: usize = 3;
    let (me, len) = (team.rank(), length(seed));
    let memory = team.symmetric::<u64>(ROUNDS * len)?;
    let flag = team.symmetric::<u64>(1)?;
    for round in 0..ROUNDS {
        let (first, number) = (round * len, round as u64 + 1);
        if round == 1 {
            middle(cut)?;
        }
        let data = words(seed ^ number, me, len);
        if seed & 1 == 0 {
            memory.put_signal(team.right(), first, &data, &flag, 0, Signal::Add(1))?;
        } else {
            memory.put(team.right(), first, &data)?;
            memory.fence()?;
            flag.signal(team.right(), 0, Signal::Set(number))?;
        }
        flag.wait_until(0, Until::AtLeast(number))?;
        let mut found = vec![0; len];
        memory.get(me, first, &mut found)?;
        let put = words(seed ^ number, team.left(), len);
        ensure(found == put, || format!("what came with signal {number}"))?;
    }
    Ok(())
}

fn atomics(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    const TIMES: u64 = 5;
    let memory = team.symmetric::<u64>(2)?;
    let place = Rank::new(Random(seed).below(team.size()));
    for _ in 0..TIMES {
        memory.fetch_add(place, 0, u64::from(team.rank().0) + 1)?;
    }
    for at in team.ranks() {
        memory.fetch_add(at, 1, 1)?;
    }
    middle(cut)?;
    team.barrier()?;
    let pes = team.size() as u64;
    let sum = if team.rank() == place { TIMES * pes * (pes + 1) / 2 } else { 0 };
    let found = [memory.load(0)?, memory.load(1)?];
    ensure(found == [sum, pes], || format!("{found:?} where {:?} was added", [sum, pes]))
}

fn counted(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let (me, pes, len) = (team.rank(), team.size(), length(seed));
    let inbox = team.symmetric::<u64>(len * pes)?;
    let (arrived, fetched) = (team.completion_counter()?, team.completion_counter()?);
    for to in team.ranks() {
        let data = words(seed ^ u64::from(to.0) << 32, me, len);
        inbox.put_counted(to, me.index() * len, &data, &arrived)?;
    }
    middle(cut)?;
    arrived.wait(pes as u64)?;
    let mut found = vec![0; len * pes];
    inbox.get(me, 0, &mut found)?;
    let of = |from| words(seed ^ u64::from(me.0) << 32, from, len);
    ensure(found == team.ranks().flat_map(of).collect::<Vec<_>>(), || "counted puts".to_owned())?;
    let mut own = vec![0; len];
    // The PE that is read may not have all its counted puts yet, but has this one's.
    inbox.get_counted(team.right(), me.index() * len, &mut own, &fetched)?;
    let put = words(seed ^ u64::from(team.right().0) << 32, me, len);
    ensure(own == put, || "a counted get".to_owned())?;
    let count = fetched.wait(1)?;
    ensure(count == 1, || format!("{count} counted gets"))
}

/// Returns the messages that a PE broadcasts: some are longer than a chunk.
fn broadcast_messages(seed: u64, source: Rank) -> Vec<Vec<u8>> {
    let mut random = Random(seed ^ u64::from(source.0) << 40);
    let count = random.below(4);
    let message = |random: &mut Random| {
        let len = *random.pick(&[0, 1, 50, 3000, 33_000]);
        (0..len).map(|_| random.next_word().to_le_bytes()[0]).collect()
    };
    (0..count).map(|_| message(&mut random)).collect()
}

fn async_broadcast(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let mut received = vec![Vec::new(); team.size()];
    let mut broadcasts = team.async_broadcasts(|source, data| {
        if let Some(Cut::Throw(payload)) = cut {
            payload.throw();
        }
        received[source.index()].push(data.to_vec());
    })?;
    for message in broadcast_messages(seed, team.rank()) {
        broadcasts.broadcast(&message)?;
        if message.len() == 1 {
            broadcasts.poll()?;
        }
    }
    if cut == Some(Cut::Forget) {
        #[expect(clippy::mem_forget, reason = "one that is dropped says so")]
        mem::forget(broadcasts);
        return Ok(());
    }
    if cut == Some(Cut::Fail) {
        middle(cut)?;
    }
    broadcasts.close()?;
    // If nobody has broadcast, no handler has thrown.
    middle(cut)?;
    for (source, received) in team.ranks().zip(received) {
        let said =
            if source == team.rank() { Vec::new() } else { broadcast_messages(seed, source) };
        ensure(received == said, || {
            format!("{} messages of PE {source}, which sent {}", received.len(), said.len())
        })?;
    }
    Ok(())
}

fn churn(team: &Team, seed: u64, heap_bytes: usize, cut: Option<Cut>) -> Result<(), Trouble> {
    let bytes = heap_bytes / 5 * 3;
    for round in 0..3 {
        let memory = team.symmetric::<u8>(bytes)?;
        let byte = seed.to_le_bytes()[0].wrapping_add(round);
        memory.put(team.right(), bytes - 1, &[byte])?;
        middle(cut)?;
        team.barrier()?;
        let found = [memory.load(0)?, memory.load(bytes - 1)?];
        ensure(found == [0, byte], || format!("{found:?} in new memory, not [0, {byte}]"))?;
    }
    Ok(())
}

/// Makes calls of one kind, whose closures are at different places of the source on different PEs.
fn repeat(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let mut random = Random(seed);
    let calls = 4 + random.below(60);
    let is_word = random.chance(2);
    let me = team.rank();
    for call in 0..calls as u64 {
        if call == 3 {
            middle(cut)?;
        }
        let of = |rank| words(seed ^ call << 16, rank, 3);
        let here = Random(seed ^ call << 8 ^ u64::from(me.0)).chance(2);
        let (found, expected) = if is_word {
            let mine = of(me)[0];
            let found = if here {
                team.all_reduce(mine, u64::composed)?
            } else {
                elsewhere::all_reduce(team, mine)?
            };
            let all = team.ranks().map(|rank| of(rank)[0]);
            (vec![found], vec![all.reduce(u64::composed).expect("a PE")])
        } else {
            let mut found = vec![0; 3];
            if here {
                team.slices(&of(me), &mut found).all_reduce(Sum)?;
            } else {
                elsewhere::sum(team, &of(me), &mut found)?;
            }
            let sum = |at: usize| team.ranks().fold(0_u64, |a, b| a.wrapping_add(of(b)[at]));
            (found, (0..3).map(sum).collect())
        };
        ensure(found == expected, || format!("{found:?}, not {expected:?}, in call {call}"))?;
    }
    Ok(())
}

/// The same calls at another call site.
mod elsewhere {
    use consort::{Result, Team, ops::Sum};

    use crate::programs::calls::closure;

    pub(super) fn all_reduce(team: &Team, mine: u64) -> Result<u64> {
        team.all_reduce(mine, closure::<u64>(None))
    }

    pub(super) fn sum(team: &Team, mine: &[u64], found: &mut [u64]) -> Result<()> {
        team.slices(mine, found).all_reduce(Sum)
    }
}

fn burst(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let calls = 2 + Random(seed).below(90) as u64;
    let (me, pes) = (u64::from(team.rank().0), team.size() as u64);
    let mut requests = Vec::new();
    for call in 0..calls {
        requests.push((call, team.start(vec![me * call]).all_reduce(Sum)?));
        if call % 16 == 3 {
            requests.push((call, team.start(vec![me * call]).all_gather()?));
        }
    }
    middle(cut)?;
    for (call, request) in requests.into_iter().rev() {
        let found = request.wait()?;
        let sum = vec![call * pes * (pes - 1) / 2];
        let each = (0..pes).map(|rank| rank * call).collect::<Vec<_>>();
        ensure(found == sum || found == each, || format!("{found:?} in call {call}"))?;
    }
    Ok(())
}
