//! A ball of some bytes passes between two PEs; the receiver copies it out.
//!
//! Source: Dinan et al. (2014), section 3.1. With a flag: put, fence, and a signal that adds to a
//! word. Both methods wait for totals, so nothing needs a reset.

use std::time::Instant;

use consort::{Rank, Result, Symmetric, Team, symmetric::Signal};

use super::program::{Notifications, Program};

pub(super) struct PingPongProgram {
    world: Team,
    ball: Symmetric<u8>,
    methods: [Notifications; 2],
}

impl PingPongProgram {
    /// Allocates the state. Collective.
    pub(super) fn new(world: &Team, most_bytes: usize) -> Result<Self> {
        let ball = world.symmetric(most_bytes)?;
        Ok(Self {
            world: world.clone(),
            ball,
            methods: Notifications::by_both(world, |_| Signal::Add(1))?,
        })
    }
}

impl Program for PingPongProgram {
    fn round_ns(&mut self, method: usize, bytes: usize, rounds: u32) -> Result<f64> {
        let (me, peer) = (self.world.rank(), self.world.right());
        let notifications = &mut self.methods[method];
        let mut data = vec![0; bytes];
        let begun = Instant::now();
        for turn in 0..2 * rounds {
            if Rank(turn % 2) == me {
                notifications.put(&self.ball, peer, 0, &data)?;
            } else {
                notifications.wait()?;
                self.ball.get(me, 0, &mut data)?;
            }
        }
        Ok(begun.elapsed().as_secs_f64() * 1e9 / f64::from(2 * rounds))
    }
}
