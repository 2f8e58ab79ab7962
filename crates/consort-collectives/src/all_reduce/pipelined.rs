//! Pipelined all-reduce: chunks go up a k-nomial tree to PE 0, and down again while later chunks go
//! up.
//!
//! Idea: in a reduction followed by a broadcast, the whole result waits for its last chunk. Here PE
//! 0 sends each chunk down as soon as it is combined, so that the two phases overlap. Sources:
//! OC-BCAST for chunks that use two buffers in turn (Petrović 2015, section 3.1.1); the Loose
//! collectives of Nishtala and Yelick 2009, section 3, for overlapping phases, here within one
//! call.
//!
//! Protocol, at a PE of depth `d`: chunk `i` goes up as in the reduction `pipelined`; then chunk `i
//! - 2d` goes down as in the broadcast `pipelined`, because a chunk takes `2d` steps to the root
//! and back. At the end the last `2d` chunks go down.
//!
//! PEs never wait in a cycle. Suppose chunk `i` goes up through a PE of depth `d` at time `i - d`,
//! and down at `i + d + 1/2`. Then each wait is for an earlier event. A PE combines the data that
//! its children, at depth `d + 1`, have sent. It sends up when its parent has taken chunk `i - 2`,
//! at `i - 2 - (d - 1)`. It receives the data that its parent has sent. It sends down when its
//! children have taken chunk `i - 2`, at `i - 2 + d + 1 + 1/2`. Of a PE's own steps, `i` up at
//! `i - d` comes before `i - 2d` down at `i - d + 1/2`, and that before `i + 1` up. All of this
//! requires sends that do not wait until the message is taken.
//!
//! Cost: `2 log_k P` chunks to fill the pipeline. Then it takes the longer of the two phases if
//! messages move while PEs work, or their sum if PEs copy messages.

use consort_fabric::{
    CallSpec, Candidate, Capabilities, MachineModel, Messages, Op, Query, Rank, Span, SyncModes,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    broadcast::knomial as down,
    rank_math::tree::Shape,
    reduce::knomial as up,
    trees::{PipelinedKnomial, Tree},
};

#[derive(Hash)]
pub struct Pipelined;

/// The duration of a call, relative to the two phases one after the other. (Simulated on Cray XT4
/// and Ranger: 0.6 to 0.75; measured between two threads: 0.8 and less.)
const OVERLAP: f64 = 0.75;

/// One PE's schedule: two trees, each with half of the channels.
#[derive(Hash)]
pub struct Schedule {
    up: up::Schedule,
    down: down::Schedule,
    /// The number of chunks by which the way down lags behind the way up.
    lag: u32,
}

impl Schedule {
    /// Returns the schedule, or `None` if the inbox or the scratch memory is too small.
    fn new(setting: &Setting, shape: Shape, chunk_bytes: usize) -> Option<Self> {
        let call = CallSpec { root: Rank(0), ..setting.call };
        let middle = setting.first_channel + setting.lines() / 2;
        let capabilities = Capabilities { inbox_channels: middle, ..setting.capabilities };
        let lower = Setting { call, capabilities, is_whole: false, ..*setting };
        let upper = Setting { call, first_channel: middle, is_whole: false, ..*setting };
        let up = up::Schedule::new(&lower, shape, chunk_bytes)?;
        let down = down::Schedule::new(&upper, shape, up.chunks().chunk_bytes())?;
        let are_alike = up.chunks() == down.chunks();
        are_alike.then_some(Self { up, down, lag: 2 * shape.depth_of(setting.rank, call.pes) })
    }
}

impl Algorithm for Pipelined {
    const NAME: &'static str = PipelinedKnomial::NAME;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "chunk_bytes", values: &[1024, 4096], range: (1, 1 << 30) },
        Parameter { name: "radix", values: &[1, 2, 4], range: (1, 1 << 16) },
    ];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        let (shape, chunk_bytes) = PipelinedKnomial::of(candidate);
        let why = "the inbox or the scratch memory is too small";
        let schedule = Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable(why))?;
        if schedule.up.chunks().count() > 1 && !setting.capabilities.buffered {
            let why = "messages are not buffered here, and both phases would wait for each other";
            return Err(Self::incapable(why));
        }
        Ok(schedule)
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.up.chunks().count())
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (shape, chunk_bytes) = PipelinedKnomial::of(candidate);
        let alone = Query { sync: SyncModes::MINE, ..*query };
        let up_ns = up::cost_ns(shape, chunk_bytes, &alone, model);
        let down_ns = down::cost_ns(shape, chunk_bytes, &alone, model);
        OVERLAP * (up_ns + down_ns)
    }

    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { up, down, lag } = schedule;
        let (chunks, count) = (up.chunks(), up.chunks().count());
        for step in 0..count + lag {
            if step < count {
                up.chunk(f, step).await?;
            }
            if let Some(index) = step.checked_sub(*lag) {
                let (at, bytes) = chunks.range(index);
                down.chunk(f, index, Span::target(at, bytes)).await?;
            }
        }
        Ok(())
    }
}
