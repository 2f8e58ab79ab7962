//! Launches the PEs of a session.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

use consort::{Error, Pes, Result};
use consort_native::topology::Topology;

use super::{
    member::Member,
    session::{Conditions, Measured, Session, block_time},
    shared::Shared,
    work::Work,
};
use crate::{environment::Switches, limits::PingPong, peers::threads::peers};

impl Session {
    /// Measures until the budget is spent, but at least one block of every work, in a job that is
    /// launched by `pes`, which has as many PEs as the session.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub fn run_in(&self, pes: Pes, conditions: &Conditions) -> Result<Measured> {
        self.run_until(pes, conditions, &AtomicBool::new(false))
    }

    /// The same, but ends with the present block once `stop` is set.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub fn run_until(
        &self,
        pes: Pes,
        conditions: &Conditions,
        stop: &AtomicBool,
    ) -> Result<Measured> {
        let fits = Topology::discover().placement(self.pes as usize).is_some();
        let shared = Shared {
            block: block_time(fits),
            ping_pong: (fits && self.pes > 1).then(PingPong::new),
            // SAFETY: each PE passes its own rank, which is below `pes`. All PEs make the calls
            // that PE 0 decides, in the same order and on buffers of the same lengths.
            #[expect(unsafe_code, reason = "peers trust their callers to match")]
            peers: unsafe { peers(self.pes) },
            decisions: Default::default(),
            go_ns: AtomicU64::new(0),
            left: AtomicBool::new(false),
            spans: (0..self.pes).map(|_| Mutex::default()).collect(),
            epoch: Instant::now(),
        };
        let mut pes = pes.heap_bytes(self.heap_bytes(conditions));
        if let Some(waiting) = self.waiting {
            pes = pes.waiting(waiting);
        }
        let results = pes.run(|pe| {
            let (timings, count, time) = Member::new(self, conditions, &shared, stop, pe).run()?;
            Ok((timings, pe.waiting(), count, time))
        })?;
        let count = results.iter().map(|(_, (.., count, _))| count).sum();
        let (_, (timings, waiting, _, time)) = results.into_iter().next().ok_or(Error::NoPes)?;
        let switches = if fits { Switches::of(count, self.pes, time) } else { Switches::default() };
        Ok(Measured { timings, waiting, switches })
    }

    /// Enough symmetric memory for the buffers of all works.
    fn heap_bytes(&self, conditions: &Conditions) -> usize {
        let buffers = |work: &Work| {
            let collective = work.query.collective;
            let blocks =
                collective.source_blocks(self.pes, true) + collective.target_blocks(self.pes, true);
            conditions.buffers * (blocks as usize * work.bytes() + 8192)
        };
        self.work.iter().map(buffers).sum::<usize>() + (1 << 20)
    }
}
