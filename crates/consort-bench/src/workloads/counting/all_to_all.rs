//! A message from every PE to every PE, in rounds.
//!
//! Source: Dinan et al. (2014), section 3.2, Listings 1.1 to 1.5: each PE begins with itself and
//! continues with the PE after it, so that they do not all put to one PE at once.
//!
//! Protocol: flags and counters are reset after each round. So there are two of each, used in turn.
//! Another PE sends its message of round `n + 2` only after it has received this PE's message of
//! round `n + 1`, and this PE sends that message only after its reset. For the same reason there
//! are two buffers, and no message is overwritten before it is read.
//!
//! The receiver checks the round in the last word of each message, and all words after a block.

use std::time::Instant;

use consort::{
    Rank, Result, Symmetric, Team,
    symmetric::{CompletionCounter, Signal, Until},
};

use super::program::Program;

pub(super) struct AllToAll {
    world: Team,
    /// Two buffers, each with one message from each PE.
    inbox: Symmetric<u64>,
    counters: [CompletionCounter; 2],
    flags: [Symmetric<u64>; 2],
    /// The number of rounds so far, by all methods.
    round: u64,
}

impl AllToAll {
    /// Allocates the state. Collective.
    pub(super) fn new(world: &Team, most_bytes: usize) -> Result<Self> {
        let words = 2 * world.size() * most_bytes / size_of::<u64>();
        Ok(Self {
            world: world.clone(),
            inbox: world.symmetric(words)?,
            counters: [world.completion_counter()?, world.completion_counter()?],
            flags: [world.symmetric(1)?, world.symmetric(1)?],
            round: 0,
        })
    }

    /// Plays one round with counting puts, flags, or a barrier.
    fn exchange(&self, method: usize, turn: usize, at: usize, message: &[u64]) -> Result<()> {
        let (me, pes) = (self.world.rank(), self.world.size());
        let everyone = || (0..pes).map(|distance| Rank::new((me.index() + distance) % pes));
        if method == 0 {
            let counter = &self.counters[turn];
            for to in everyone() {
                self.inbox.put_counted(to, at, message, counter)?;
            }
            counter.wait(pes as u64)?;
            return counter.set(0);
        }
        for to in everyone() {
            self.inbox.put(to, at, message)?;
        }
        if method == 1 {
            let flag = &self.flags[turn];
            self.inbox.fence()?;
            for to in everyone() {
                flag.signal(to, 0, Signal::Add(1))?;
            }
            flag.wait_until(0, Until::AtLeast(pes as u64))?;
            flag.signal(me, 0, Signal::Set(0))
        } else {
            self.inbox.quiet()?;
            self.world.barrier()
        }
    }
}

impl Program for AllToAll {
    fn round_ns(&mut self, method: usize, bytes: usize, rounds: u32) -> Result<f64> {
        let (me, pes, len) = (self.world.rank(), self.world.size(), bytes / 8);
        let word = |from: usize, round: u64| (from as u64) << 48 | round;
        let first = |turn: usize, from: usize| (turn * pes + from) * len;
        let mut message = vec![word(me.index(), 0); len];
        self.world.barrier()?;
        let begun = Instant::now();
        for _ in 0..rounds {
            self.round += 1;
            let turn = usize::from(self.round.is_multiple_of(2));
            message[len - 1] = word(me.index(), self.round);
            self.exchange(method, turn, first(turn, me.index()), &message)?;
            for from in 0..pes {
                let last = self.inbox.load(first(turn, from) + len - 1)?;
                assert_eq!(last, word(from, self.round), "of PE {from}, in round {}", self.round);
            }
        }
        let ns = begun.elapsed().as_secs_f64() * 1e9 / f64::from(rounds);
        let turn = usize::from(self.round.is_multiple_of(2));
        for from in 0..pes {
            self.inbox.get(me, first(turn, from), &mut message)?;
            let rest = &message[..len - 1];
            assert!(rest.iter().all(|&one| one == word(from, 0)), "of PE {from}: {rest:?}");
        }
        Ok(ns)
    }
}
