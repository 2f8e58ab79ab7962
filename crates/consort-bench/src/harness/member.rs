//! One PE's part in a session.

use std::{
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{
    Error, Pe, Result, Team,
    error::CallError,
    tune::{Candidate, Collective},
};
use consort_machine::usage::involuntary_switches;

use super::{
    clock::Clock,
    session::{Block, Conditions, Mode, Session, SessionOutcome, Timing},
    shared::SessionState,
    work::{ServedBy, Work, WorkMemory},
};
use crate::{environment::Switches, limits::readings_agree, peers::threads::Peer};

/// Calls before a block: a window of a small team. The calls of a window use different cache lines,
/// and the first calls of a new plan have to fetch these lines.
const CALLS_BEFORE: u64 = 64;
/// The longest time for the calls of a first window, estimated by the second call.
const FIRST_WINDOW_NS: f64 = 5_000_000.0;
/// Warm-up continues until a block of calls takes this long...
const WARM_UP_NS: f64 = 50_000.0;
/// ... or has this many calls.
const MOST_WARM_UP_CALLS: u64 = 1 << 16;
/// The fastest of this many tries counts, because one may be interrupted...
const WARM_UP_TRIES: u32 = 3;
/// ... unless a try takes longer than an interruption.
const RETRY_NS: f64 = 10_000_000.0;
/// A first call of this length is not warmed up: neither the clock nor a new plan matters.
const LONG: Duration = Duration::from_millis(50);
/// The decisions in warm-up that are not a number of calls: four times as many calls, or the same
/// number again.
const MORE: u64 = 0;
const AGAIN: u64 = u64::MAX;
const MOST_CALLS: f64 = 1e6;
/// The decision that ends a session.
const STOP: u64 = u64::MAX;

/// One PE of a session.
pub(super) struct Member<'m> {
    session: &'m Session,
    conditions: &'m Conditions,
    shared: &'m SessionState,
    peers: &'m [Box<dyn Peer>],
    /// Set when the session is to end.
    stop: &'m AtomicBool,
    world: &'m Team,
    clock: Clock<'m>,
    forced: Option<(Collective, Candidate)>,
    decided: usize,
}

/// The number of calls in a block, and before it.
#[derive(Clone, Copy, Default)]
struct BlockSize {
    calls: u64,
    before: u64,
}

impl<'m> Member<'m> {
    /// Creates a PE of a session whose thread libraries are `peers`.
    pub(super) fn new(
        (session, conditions): (&'m Session, &'m Conditions),
        shared: &'m SessionState,
        peers: &'m [Box<dyn Peer>],
        stop: &'m AtomicBool,
        pe: &'m Pe,
    ) -> Self {
        let world = pe.world();
        let clock = Clock::new(session.mode, conditions, shared, peers, world);
        let (forced, decided) = (None, 0);
        Self { session, conditions, shared, peers, stop, world, clock, forced, decided }
    }

    /// Measures. The result, over all PEs, is meaningful on PE 0 only.
    pub(super) fn run(mut self, pe: &Pe) -> Result<SessionOutcome> {
        let work = &self.session.work;
        let benches = self.prepare()?;
        let mut timings = vec![Timing::default(); work.len()];
        let mut fitting = vec![BlockSize::default(); work.len()];
        for (index, work) in work.iter().enumerate() {
            if self.agree(u64::from(self.is_stopped()))? != 0 {
                break;
            }
            match self.warm_up(work, &benches[index]) {
                Ok((fits, algorithm)) => {
                    fitting[index] = fits;
                    timings[index].algorithm = algorithm;
                }
                Err(error @ Error::Call(CallError::Plan(_))) => {
                    timings[index].error = Some(error.to_string())
                }
                Err(error) => return Err(error),
            }
        }
        let able: Vec<usize> = (0..work.len()).filter(|&index| fitting[index].calls > 0).collect();
        let (start, before) = (Instant::now(), involuntary_switches());
        for step in 0.. {
            let turn = step / able.len().max(1);
            let is_spent = turn > 0 && start.elapsed() >= self.session.budget;
            let over = is_spent || self.is_stopped();
            let next = able.get(step % able.len().max(1)).filter(|_| !over);
            let next = self.agree(next.map_or(STOP, |&index| index as u64))?;
            let Some(index) = usize::try_from(next).ok().filter(|_| next != STOP) else { break };
            let turn = u32::try_from(turn).unwrap_or(u32::MAX);
            self.take(&work[index], &benches[index], fitting[index], turn, &mut timings[index])?;
        }
        let lost = before.zip(involuntary_switches()).map(|(before, after)| after - before);
        let (lost, time) = (self.shared.sum(self.world, lost.unwrap_or(0))?, start.elapsed());
        let switches = match self.shared.fits {
            true => Switches::of(lost, self.session.pes, time),
            false => Switches::default(),
        };
        Ok(SessionOutcome { timings, waiting: pe.waiting(), switches })
    }

    /// Prepares buffers for all works. Works of the same kind share them, so that they are measured
    /// on the same pages.
    fn prepare(&self) -> Result<Vec<Rc<WorkMemory>>> {
        let mut benches: Vec<Rc<WorkMemory>> = Vec::new();
        for (index, work) in self.session.work.iter().enumerate() {
            let alike = self.session.work[..index].iter().position(|other| other.shares(work));
            benches.push(match alike {
                Some(other) => Rc::clone(&benches[other]),
                None => Rc::new(work.prepare(self.world, self.conditions.buffers)?),
            });
        }
        Ok(benches)
    }

    /// Measures one block, and the transfer before and after it.
    fn take(
        &mut self,
        work: &Work,
        bench: &WorkMemory,
        fitting: BlockSize,
        turn: u32,
        timing: &mut Timing,
    ) -> Result<()> {
        self.serve(work);
        for _ in 0..fitting.before {
            work.call(bench, self.peers)?;
        }
        let before = self.clock.reading();
        let block = self.clock.block(work, bench, fitting.calls)?;
        let after = self.clock.reading();
        match (before, after) {
            (Some(a), Some(b)) if !readings_agree(a, b) => timing.discarded += 1,
            _ => {
                let transfer_ns = before.zip(after).map(|(a, b)| f64::midpoint(a, b));
                timing.blocks.push(Block { transfer_ns, turn, ..block });
            }
        }
        Ok(())
    }

    /// Makes calls until their time is known. Returns how many fit into a block, and the candidate
    /// that served them.
    fn warm_up(
        &mut self,
        work: &Work,
        bench: &WorkMemory,
    ) -> Result<(BlockSize, Option<Candidate>)> {
        self.serve(work);
        let first = Instant::now();
        if let Err(error) = work.call(bench, self.peers) {
            self.choose_freely();
            return Err(error);
        }
        let algorithm = match work {
            Work::Call(query, ServedBy::Consort(_)) => {
                self.world.algorithms().served_by(query.collective)
            }
            _ => None,
        };
        if self.agree(u64::from(first.elapsed() >= LONG))? != 0 {
            return Ok((BlockSize { calls: 1, before: 0 }, algorithm));
        }
        // The calls of a window have different places in memory, which are new at first.
        let call_ns = self.clock.block(work, bench, 1)?.ns.max(1.0);
        let window = (FIRST_WINDOW_NS / call_ns).clamp(1.0, CALLS_BEFORE as f64);
        let window = self.agree(to_count(window))?;
        self.clock.block(work, bench, window)?;
        let most_warm_up = MOST_WARM_UP_CALLS.min(self.shared.most_calls() / 4);
        let (mut calls, mut tries, mut call_ns) = (1, 0, f64::INFINITY);
        loop {
            tries += 1;
            let start = Instant::now();
            let taken_ns = self.clock.block(work, bench, calls)?.ns.max(1.0);
            // In a block of single calls, most of the time passes between the calls.
            let spent_ns = match self.session.mode {
                Mode::Throughput => taken_ns,
                Mode::Latency => start.elapsed().as_nanos() as f64 / calls as f64,
            };
            call_ns = call_ns.min(spent_ns);
            let total_ns = call_ns * calls as f64;
            let decision = if total_ns < WARM_UP_NS && calls < most_warm_up {
                MORE
            } else if tries < WARM_UP_TRIES && total_ns < RETRY_NS {
                AGAIN
            } else {
                to_count(self.shared.block.as_nanos() as f64 / call_ns)
                    .min(self.shared.most_calls())
            };
            match self.agree(decision)? {
                MORE => (calls, tries, call_ns) = (4 * calls, 0, f64::INFINITY),
                AGAIN => {}
                calls => {
                    let before = calls.min(CALLS_BEFORE);
                    return Ok((BlockSize { calls, before }, algorithm));
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.stop.load(Relaxed)
    }

    /// Passes PE 0's decision to all PEs.
    fn agree(&mut self, mine: u64) -> Result<u64> {
        self.decided += 1;
        self.shared.agree(self.world, self.decided, mine)
    }

    /// Forces the work's algorithm. A change drops all plans, so nothing is done if the algorithm
    /// is already in force.
    fn serve(&mut self, work: &Work) {
        let wanted = work.candidate().map(|(collective, by)| (collective, by.clone()));
        if self.forced != wanted {
            self.choose_freely();
            if let Some((collective, candidate)) = &wanted {
                self.world.algorithms().force(*collective, Some(candidate.clone()));
            }
            self.forced = wanted;
        }
    }

    fn choose_freely(&mut self) {
        if let Some((collective, _)) = self.forced.take() {
            self.world.algorithms().force(collective, None);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and a million"
)]
fn to_count(calls: f64) -> u64 {
    calls.clamp(1.0, MOST_CALLS) as u64
}
