//! Synchronous OC-BCAST: chunks go from message buffer to message buffer, down a k-ary tree.
//!
//! Idea: a PE puts a chunk into its buffer, and its `k` children get it from there concurrently.
//! The copy to the caller's memory is off the critical path. `k` bounds the number of PEs that read
//! one buffer. The notification of a chunk spreads among the children along a separate binary tree
//! (`rank_math/tree`). A buffer holds two chunks, so that one is filled while the other is read.
//! Source: Petrović 2015, section 3.1, Algorithm 1.
//!
//! Protocol, for each chunk:
//! 1. from chunk 2 on, wait until all children have chunk `i - 2`, whose place chunk `i` takes;
//! 2. the root copies the chunk into its buffer. Other PEs wait to be notified, notify the siblings
//!    after them in the binary tree, get the chunk into their buffer, and signal the parent;
//! 3. notify the first two children; copy the chunk from the buffer to the target.
//!
//! At the end, wait until all children have the last chunk.
//!
//! Cost of the first chunk: a copy, a get for each level of the tree, and a copy. Cost of each
//! further chunk: a get and a copy. Each chunk takes `P - 1` notifications and `P - 1`
//! acknowledgements.

use consort_fabric::{
    CallSpec, Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Rma, Span, Step,
    SyncModes,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::relay,
    rank_math::tree::{NotificationTree, Shape},
};

#[derive(Hash)]
pub struct OcBcast;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    chunk: usize,
    chunks: Step,
    /// The channel in which a PE is notified that its parent has a chunk.
    notify: Channel,
    /// The parent, and the channel in which this PE acknowledges a chunk to it.
    parent: Option<(Rank, Channel)>,
    /// The channels in which this PE's children acknowledge a chunk.
    done: Box<[Channel]>,
    notified: NotificationTree,
}

impl Algorithm for OcBcast {
    const NAME: &'static str = "oc_bcast";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = relay::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        let (shape, chunk, chunks) = relay::divided::<Self>(setting, candidate)?;
        let node = shape.node(rank, root, pes);
        let done = |index| setting.channel(1 + index);
        Ok(Schedule {
            bytes,
            chunk,
            chunks,
            notify: setting.channel(0),
            parent: node.parent.map(|(parent, index)| (parent, done(index))),
            done: (0..).zip(node.children).map(|(index, _)| done(index)).collect(),
            notified: shape.notified(rank, root, pes),
        })
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.chunks)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let k = candidate.parameter("k").and_then(|k| u32::try_from(k).ok()).unwrap_or(7);
        let (shape, bytes) = (Shape::Kary(k), query.bytes as f64);
        let chunk = bytes.min(candidate.parameter("chunk_bytes").unwrap_or(3072) as f64);
        let chunks = (bytes / chunk.max(1.0)).ceil().max(1.0);
        let (fan, depth) = (shape.fan(query.pes), f64::from(shape.depth(query.pes)));
        let notice = model.hops_ns(f64::from(Shape::Kary(2).depth(fan + 1)), query.pes);
        // A PE and its children read from its buffer at the same time.
        let readers = f64::from(fan) + 1.0;
        let (get, copy) = (model.pulled_ns(chunk, readers), chunk / model.copy_gbps);
        let work = get + copy + f64::from(fan) * model.overhead_ns;
        if model.is_shared(query.pes) {
            // The work of all PEs is done one after the other, and two chunks fill the buffers.
            let turns = model.pes_a_core(query.pes);
            return chunks * work * turns + (depth + (chunks / 2.0).floor()) * notice;
        }
        // In a row of Loose calls, the levels work at the same time, as they do on successive
        // chunks.
        let levels = if query.sync == SyncModes::LOOSE { depth.min(1.0) } else { depth };
        let level = notice + get + model.overhead_ns;
        let turn = work.max((level + model.hops_ns(1.0, query.pes)) / 2.0);
        // At the end, the parents poll their children's flags while the leaves copy.
        let last = copy.max(f64::from(fan) * model.overhead_ns) + model.hops_ns(1.0, query.pes);
        copy + levels * level + last + (chunks - 1.0) * turn
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, chunk, chunks, notify, parent, ref done, ref notified } = *schedule;
        for index in 0..chunks {
            let at = index as usize * chunk;
            let bytes = chunk.min(bytes - at);
            let buffer = Span::buffer(index as usize % 2 * chunk, bytes);
            if let Some(earlier) = index.checked_sub(2) {
                for &child in done {
                    f.wait(child, earlier).await?;
                }
            }
            if let Some((parent, done)) = parent {
                f.wait(notify, index).await?;
                for &sibling in &notified.siblings {
                    f.signal(sibling, notify, index).await?;
                }
                let data = f.reach(parent, buffer);
                f.get(&data, 0, buffer).await?;
                f.signal(parent, done, index).await?;
            } else {
                f.copy(buffer, Span::source(at, bytes)).await?;
            }
            for &child in &notified.children {
                f.signal(child, notify, index).await?;
            }
            if parent.is_some() {
                f.copy(Span::target(at, bytes), buffer).await?;
            }
        }
        for &child in done {
            f.wait(child, chunks - 1).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Capabilities, Collective, OperatorClass};

    use super::*;
    use crate::candidates;

    const CAPABILITIES: Capabilities = Capabilities {
        exposes: false,
        buffered: false,
        ..Capabilities::with_memory(256, 8192, 8192)
    };

    fn query(pes: u32) -> Query {
        Query {
            collective: Collective::Broadcast,
            sync: SyncModes::MINE,
            pes,
            bytes: 10_000,
            operator: OperatorClass::Commutative,
            symmetric: false,
        }
    }

    fn refused(pes: u32, k: u64, chunk_bytes: u64) -> String {
        let candidate = Candidate::new("oc_bcast").with("k", k).with("chunk_bytes", chunk_bytes);
        let schedule = OcBcast::schedule(&Setting::of(&query(pes), CAPABILITIES), &candidate);
        schedule.err().expect("it cannot serve").to_string()
    }

    #[test]
    fn refusal_states_the_exceeded_numbers() {
        assert_eq!(refused(4, 0, 96), "oc_bcast needs k from 1 to 65535");
        let many = "oc_bcast cannot serve this call: k is 4, but 4 PEs allow at most 3";
        assert_eq!(refused(4, 4, 96), many);
        let large = "oc_bcast cannot serve this call: \
                     two chunks of 4097 B do not fit the message buffer, 8192 B";
        assert_eq!(refused(4, 3, 4097), large);
    }

    #[test]
    fn tuner_gets_candidates_that_fit() {
        for (pes, degrees) in [(1, &[1][..]), (2, &[1]), (7, &[1, 2]), (8, &[1, 2, 7])] {
            let all = candidates(&query(pes), CAPABILITIES).into_iter();
            let of = all.filter(|candidate| candidate.algorithm == "oc_bcast");
            let offered: Vec<_> =
                of.map(|one| (one.parameter("chunk_bytes"), one.parameter("k"))).collect();
            let expected: Vec<_> = degrees.iter().map(|&k| (Some(3072), Some(k))).collect();
            assert_eq!(offered, expected, "{pes} PEs");
        }
    }
}
