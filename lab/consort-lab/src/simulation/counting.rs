//! The programs of `consort bench counting` on a simulated cluster: with counting puts, and with
//! the operations that counting puts replace.
//!
//! Source: Dinan et al. (2014), section 3. In the model, a counted put is one message, which adds
//! to the counter at its target. A flag is a separate message. A fence, and the quiet of a barrier,
//! wait until receipts of all puts have come back, because "Portals presents the programmer with an
//! unordered network". The barrier is a dissemination of radix 2. The stencil computes in
//! [`Compute::dependent_add_ns`](consort_sim::machines::Compute), with two additions per point.
//! Counters and flags only count up, so no time is spent to reset them.
//!
//! The data is checked on arrival.

use anyhow::{Result, ensure};
use consort::Rank;
use consort_fabric::{CallSpec, Local, Op, Poisoned, Rma, Signal, Span};
use consort_machine::Until;
use consort_sim::{
    Call, Caller, Operands, Pe, Plans, Simulation,
    machines::{Kind, Machine},
};

use super::program::barrier;

/// How a PE notifies another one that its data is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// The put adds to a counter.
    Counted,
    /// A fence and a flag follow.
    Flag,
    /// All puts complete, then a barrier follows.
    Barrier,
}

impl Notification {
    /// All notifications, in the order of [`METHODS`](consort_bench::workloads::counting::METHODS).
    pub const EVERY: [Self; 3] = [Self::Counted, Self::Flag, Self::Barrier];
}

/// Bytes in a counter, a flag, and a value of the stencil.
const WORD: usize = size_of::<u64>();
/// The numbers of round trips, of rounds of an all-to-all, and of iterations of the stencil.
const ROUND_TRIPS: u32 = 8;
const ROUNDS: u32 = 3;
const ITERATIONS: usize = 2;

/// Returns a cluster with `pes_per_node` PEs on each node.
///
/// # Errors
/// When the machine is not a cluster.
pub fn with_pes_per_node(mut machine: Machine, pes_per_node: u32) -> Result<Machine> {
    let name = machine.name.clone();
    let Kind::Cluster(cluster) = &mut machine.kind else {
        anyhow::bail!("{name} is not a cluster")
    };
    cluster.pes_per_node = pes_per_node;
    Ok(machine)
}

/// The memory of a PE: that of the data, and two counting words.
#[derive(Clone, Copy)]
struct Memory {
    bytes: usize,
}

impl Memory {
    fn of(bytes: usize) -> Self {
        Self { bytes: bytes.next_multiple_of(WORD) }
    }

    fn word(self, turn: usize) -> usize {
        self.bytes + turn * WORD
    }

    fn all_bytes(self) -> usize {
        self.bytes + 2 * WORD
    }

    /// Puts data at a peer.
    async fn put(self, call: &Call<'_>, to: Rank, at: usize, source: Span) -> Op {
        call.put(&call.reach(to, Span::heap(0, self.all_bytes())), at, source).await
    }

    /// Puts data at a peer, and counts there.
    async fn count(
        self,
        call: &Call<'_>,
        (to, turn): (Rank, usize),
        at: usize,
        source: Span,
    ) -> Op {
        let remote = call.reach(to, Span::heap(0, self.all_bytes()));
        call.put_signal(&remote, at, source, self.word(turn), Signal::Add(1)).await
    }

    /// Adds to the flag of a peer.
    async fn flag(self, call: &Call<'_>, to: Rank, turn: usize) -> Op {
        self.count(call, (to, turn), 0, Span::heap(0, 0)).await
    }

    /// Puts data at the peer that waits for it, and notifies the peer.
    async fn notify(
        self,
        call: &Call<'_>,
        notification: Notification,
        to: Rank,
        at: usize,
        source: Span,
    ) -> Op {
        if notification == Notification::Counted {
            return self.count(call, (to, 0), at, source).await;
        }
        self.put(call, to, at, source).await?;
        call.receipts().await?;
        self.flag(call, to, 0).await
    }
}

fn all(ended_ns: Vec<Result<f64, Poisoned>>) -> Result<f64> {
    let ended_ns = ended_ns.into_iter().collect::<Result<Vec<f64>, _>>();
    let ended_ns = ended_ns.map_err(|_| anyhow::anyhow!("a simulated job has failed"))?;
    Ok(ended_ns.into_iter().fold(0.0, f64::max))
}

/// Returns half the round trip of a ball between two nodes, in nanoseconds.
///
/// # Errors
/// When the simulation fails.
pub fn half_trip_ns(machine: &Machine, notification: Notification, bytes: usize) -> Result<f64> {
    // A place for the incoming ball, and one for the outgoing ball.
    let memory = Memory::of(2 * bytes);
    let machine = with_pes_per_node(machine.clone(), 1)?;
    let simulation = Simulation::on(machine, 2).heap_bytes(memory.all_bytes());
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        let (me, peer) = (pe.rank(), Rank(1 - pe.rank().0));
        for turn in 0..2 * ROUND_TRIPS {
            let ball = vec![u8::try_from(turn).unwrap_or(0); bytes];
            if Rank(turn % 2) == me {
                pe.set_heap(bytes, &ball);
                memory.notify(&call, notification, peer, 0, Span::heap(bytes, bytes)).await?;
            } else {
                call.wait_until(memory.word(0), Until::AtLeast(u64::from(turn / 2 + 1))).await?;
                assert_eq!(pe.heap(0, bytes), ball, "the ball of turn {turn}");
            }
        }
        Ok(pe.now_ns())
    })?;
    Ok(all(outcome.results)? / f64::from(2 * ROUND_TRIPS))
}

/// Returns the time of a round in which every PE sends a message to every PE, in nanoseconds.
///
/// # Errors
/// When the simulation fails.
pub fn all_to_all_ns(
    machine: &Machine,
    pes: u32,
    notification: Notification,
    bytes: usize,
) -> Result<f64> {
    let count = pes as usize;
    // Two buffers, used in turn, and the message to send.
    let own = 2 * count * bytes;
    let memory = Memory::of(own + bytes);
    let simulation = Simulation::on(machine.clone(), pes).heap_bytes(memory.all_bytes());
    let plans = simulation.plan(&CallSpec::barrier(pes), &barrier(), &barrier())?;
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        let mut caller = Caller::new(pe);
        let message = |from: u32| vec![from.to_le_bytes()[0]; bytes];
        pe.set_heap(own, &message(pe.rank().0));
        for round in 0..ROUNDS {
            let turn = round as usize % 2;
            round_of(&call, (&mut caller, &plans), notification, memory, turn, round, bytes)
                .await?;
        }
        for from in 0..pes {
            let turn = (ROUNDS as usize - 1) % 2;
            let at = (turn * count + from as usize) * bytes;
            assert_eq!(pe.heap(at, bytes), message(from), "of PE {from}");
        }
        Ok(pe.now_ns())
    })?;
    Ok(all(outcome.results)? / f64::from(ROUNDS))
}

async fn round_of(
    call: &Call<'_>,
    (caller, plans): (&mut Caller<'_, '_>, &Plans),
    notification: Notification,
    memory: Memory,
    turn: usize,
    round: u32,
    bytes: usize,
) -> Op {
    let (me, pes) = (call.rank(), call.size());
    let everyone = || (0..pes).map(move |distance| Rank((me.0 + distance) % pes));
    let source = Span::heap(2 * pes as usize * bytes, bytes);
    let at = (turn * pes as usize + me.index()) * bytes;
    let count = Until::AtLeast(u64::from(pes) * u64::from(round / 2 + 1));
    if notification == Notification::Counted {
        for to in everyone() {
            memory.count(call, (to, turn), at, source).await?;
        }
        return call.wait_until(memory.word(turn), count).await.map(drop);
    }
    for to in everyone() {
        memory.put(call, to, at, source).await?;
    }
    call.receipts().await?;
    if notification == Notification::Barrier {
        return caller.call(plans, Operands::NONE).await.map(drop);
    }
    for to in everyone() {
        memory.flag(call, to, turn).await?;
    }
    call.wait_until(memory.word(turn), count).await.map(drop)
}

/// The columns and rows of a grid.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The columns, which PEs share.
    pub columns: usize,
    /// The rows. Every PE but the last sends a notification for each row.
    pub rows: usize,
}

impl Grid {
    /// Returns the operations on doubles of an iteration that takes a given time, in 10^9 per
    /// second.
    pub fn gflops(self, iteration_ns: f64) -> f64 {
        2.0 * self.columns as f64 * self.rows as f64 / iteration_ns
    }
}

/// Returns the time of an iteration of the pipelined stencil, in nanoseconds.
///
/// # Errors
/// When the simulation fails, or the description does not have the machine's computing rates.
pub fn stencil_ns(
    machine: &Machine,
    pes: u32,
    notification: Notification,
    grid: Grid,
) -> Result<f64> {
    let Grid { columns, rows } = grid;
    let compute = match &machine.kind {
        Kind::Cluster(cluster) => cluster.compute.as_ref(),
        _ => None,
    };
    let add_ns = compute.and_then(|compute| compute.dependent_add_ns);
    ensure!(add_ns.is_some(), "{}: the description has no time of an addition", machine.name);
    let point_ns = 2.0 * add_ns.unwrap_or_default();
    // A value of each row from the left neighbour (on PE 0 that of the corner), and the PE's own
    // value.
    let own = (rows + 1) * WORD;
    let memory = Memory::of(own + WORD);
    let simulation = Simulation::on(machine.clone(), pes).heap_bytes(memory.all_bytes());
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        let (me, last) = (pe.rank(), Rank(pes - 1));
        let before = |pe: usize| columns * pe / pes as usize;
        let row_ns = (before(me.index() + 1) - before(me.index())) as f64 * point_ns;
        let mut waits = 0;
        let value = |iteration: usize, row: usize| (iteration * (rows + 1) + row) as u64;
        let source = Span::heap(own, WORD);
        for iteration in 0..ITERATIONS {
            for row in 1..=rows {
                if me > Rank(0) {
                    waits += 1;
                    call.wait_until(memory.word(0), Until::AtLeast(waits)).await?;
                    let received = pe.heap(row * WORD, WORD);
                    assert_eq!(received, value(iteration, row).to_ne_bytes(), "row {row}");
                }
                pe.work(row_ns).await;
                if me < last {
                    pe.set_heap(own, &value(iteration, row).to_ne_bytes());
                    memory.notify(&call, notification, Rank(me.0 + 1), row * WORD, source).await?;
                }
            }
            if me == last {
                memory.notify(&call, notification, Rank(0), 0, source).await?;
            }
            if me == Rank(0) {
                waits += 1;
                call.wait_until(memory.word(0), Until::AtLeast(waits)).await?;
            }
        }
        Ok(pe.now_ns())
    })?;
    Ok(all(outcome.results)? / ITERATIONS as f64)
}
