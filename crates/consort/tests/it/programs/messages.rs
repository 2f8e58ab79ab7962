//! The scene of messages: rounds in which the PEs of a team send each other messages, by matching
//! calls of different kinds.

use consort::{EAGER_BYTES, Rank, Team, nonblocking::Request};
use consort_conformance::data::Random;

use super::scenes::{Cut, Trouble, ensure, middle, words};

/// The longest message in words that is sent without waiting for its receiver.
const EAGER: usize = EAGER_BYTES / size_of::<u64>();

/// One message of a round.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: Rank,
    to: Rank,
    len: usize,
    seed: u64,
}

impl Message {
    fn data(&self) -> Vec<u64> {
        words(self.seed, self.from, self.len)
    }

    fn check(&self, found: &[u64]) -> Result<(), Trouble> {
        ensure(found == self.data(), || format!("{self:?}"))
    }

    fn send(&self, team: &Team) -> Result<(), Trouble> {
        Ok(team.send(self.to, &self.data())?)
    }

    fn receive(&self, team: &Team) -> Result<(), Trouble> {
        let mut found = vec![0; self.len];
        team.receive(self.from, &mut found)?;
        self.check(&found)
    }

    fn start(&self, team: &Team) -> Result<Request<Vec<u64>>, Trouble> {
        Ok(if team.rank() == self.from {
            team.start_send(self.to, self.data())?
        } else {
            team.start_receive(self.from, vec![0; self.len])?
        })
    }
}

/// The way in which the PEs of a round make its calls.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// All send, then all receive.
    Eager,
    /// One message after the other.
    InTurn,
    /// All calls are started, and waited for in the reverse order.
    Started,
    /// All receives are started, then all send.
    Awaited,
    /// In a scope, from borrowed data.
    Scoped,
}

const WAYS: [Way; 5] = [Way::Eager, Way::InTurn, Way::Started, Way::Awaited, Way::Scoped];

fn round(team: &Team, way: Way, messages: &[Message]) -> Result<(), Trouble> {
    let me = team.rank();
    let sent = || messages.iter().filter(|message| message.from == me);
    let received = || messages.iter().filter(|message| message.to == me);
    let own = || messages.iter().filter(|message| [message.from, message.to].contains(&me));
    match way {
        Way::Eager => {
            sent().try_for_each(|message| message.send(team))?;
            received().try_for_each(|message| message.receive(team))
        }
        Way::InTurn => own().try_for_each(|message| match message.from == me {
            true => message.send(team),
            false => message.receive(team),
        }),
        Way::Started => {
            let started = own().map(|message| Ok((message, message.start(team)?)));
            let started = started.collect::<Result<Vec<_>, Trouble>>()?;
            let mut each = started.into_iter().rev();
            each.try_for_each(|(message, request)| message.check(&request.wait()?))
        }
        Way::Awaited => {
            let started = received().map(|message| Ok((message, message.start(team)?)));
            let started = started.collect::<Result<Vec<_>, Trouble>>()?;
            sent().try_for_each(|message| message.send(team))?;
            let mut each = started.into_iter();
            each.try_for_each(|(message, request)| message.check(&request.wait()?))
        }
        Way::Scoped => {
            let data: Vec<_> = sent().map(Message::data).collect();
            let mut found: Vec<_> = received().map(|message| vec![0; message.len]).collect();
            team.overlap(|scope| {
                for (message, data) in sent().zip(&data) {
                    scope.start_send(message.to, data)?;
                }
                for (message, found) in received().zip(&mut found) {
                    scope.start_receive(message.from, found)?;
                }
                Ok(())
            })?;
            received().zip(&found).try_for_each(|(message, found)| message.check(found))
        }
    }
}

/// Each PE sends to the PE `by` ranks after it.
fn shift(team: &Team, by: usize, len: usize, seed: u64) -> Result<(), Trouble> {
    let (me, pes) = (team.rank(), team.size());
    let from = me.plus(pes - by % pes, pes);
    let (sent, mut found) = (words(seed, me, len), vec![0; len]);
    team.send_receive(me.plus(by, pes), &sent, from, &mut found)?;
    Message { from, to: me, len, seed }.check(&found)
}

pub(super) fn play(team: &Team, seed: u64, cut: Option<Cut>) -> Result<(), Trouble> {
    let (mut random, pes) = (Random(seed), team.size());
    // Prevents messages of different scenes from matching.
    team.barrier()?;
    for _ in 0..1 + random.below(3) {
        let way = *random.pick(&WAYS);
        let len = |random: &mut Random| {
            let long = if matches!(way, Way::Eager) { EAGER } else { 20_000 };
            *random.pick(&[0, 1, 7, 7, 800, 1536, 1537, EAGER, long])
        };
        let message = |random: &mut Random| {
            let from = random.below(pes);
            let apart = 1 + random.below(pes - 1);
            let (from, to) = (Rank(0).plus(from, pes), Rank(0).plus(from + apart, pes));
            Message { from, to, len: len(random), seed: random.next_word() }
        };
        let messages: Vec<_> = match pes {
            1 => Vec::new(),
            _ => (0..random.below(12)).map(|_| message(&mut random)).collect(),
        };
        round(team, way, &messages)?;
        middle(cut)?;
        let (by, len) = (random.below(8), len(&mut random));
        shift(team, by, len, random.next_word())?;
    }
    Ok(())
}
