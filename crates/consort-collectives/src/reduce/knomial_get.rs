//! Reduction up a k-nomial tree, where parents get from their children's message buffers.
//!
//! Idea: a PE combines in its own buffer, and its parent reads that buffer and combines in the same
//! pass, without a copy in between. Radix 1 is the chain, in which a PE combines its contribution
//! with its child's result in one pass. In other trees a PE first copies its contribution, in the
//! time in which it would wait for its children. Source: Nishtala and Yelick 2009, sections 2.2 and
//! 4; and the reverse of OC-BCAST (Petrović 2015 describes only the broadcast): a message longer
//! than the buffer goes up in chunks, two of which fit the buffer.
//!
//! Protocol, for each chunk:
//! 1. from chunk 2 on, wait until the parent has taken chunk `i - 2`, whose place chunk `i` takes;
//! 2. copy the contribution into this PE's buffer, or at the root into the target (in a chain only
//!    the last PE does; see above);
//! 3. for each child, when it signals that it is ready: combine its buffer with this PE's in one
//!    pass, and signal that its buffer is taken;
//! 4. signal the parent. At the end, wait until it signals that the last chunk is taken.
//!
//! The largest subtree may come first. Then its pass does not wait for the passes of the smaller
//! subtrees, but theirs wait for it. Which order is faster depends on the machine and the modes. If
//! the operator is not commutative, the smallest subtree comes first, and the tree is rooted at PE
//! 0; the root gets the result from the buffer of PE 0. The root waits for each chunk of the result
//! before it continues, so chunks do not follow each other closely.
//!
//! Cost of the first chunk: a copy, and the passes on the longest path through the tree. Cost of
//! each further chunk: a copy and the passes of a PE. A PE's call lasts until its parent has taken
//! its buffer, even in a row of Loose calls.

use consort_fabric::{
    CallSpec, Candidate, Channel, MachineModel, Messages, Op, OperatorClass, Place, Query, Rank,
    Rma, Span, Step, SyncModes,
};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting, rank_math::tree::Shape};

#[derive(Hash)]
pub struct KnomialGet;

/// The size of a message buffer in the model's estimate, which cannot depend on a fabric.
const BUFFER_BYTES: f64 = 65536.0;

/// A PE whose buffer is read, and the channel in which it signals that it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Read {
    peer: Rank,
    ready: Channel,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    /// The length of a chunk, in bytes.
    chunk: usize,
    chunks: Step,
    /// Whether this PE combines in the target rather than in the message buffer.
    keeps: bool,
    /// Whether this PE's contribution is first copied there.
    copies: bool,
    /// The children, in the order in which they are combined.
    children: Box<[Read]>,
    /// The PE that reads this PE's buffer, and the channel in which it is signalled.
    reader: Option<(Rank, Channel)>,
    /// The tree's root, from which the call's root reads, if these differ.
    result: Option<Read>,
    /// The channel in which this PE is signalled that its buffer is taken.
    taken: Channel,
}

impl Schedule {
    /// Returns the spans of a chunk in the target and in the message buffers.
    #[inline(always)]
    fn chunk(&self, step: Step) -> (Span, Span) {
        let at = step as usize * self.chunk;
        let bytes = self.chunk.min(self.bytes - at);
        let half = (step % 2) as usize * self.chunk;
        (Span::target(at, bytes), Span::buffer(half, bytes))
    }
}

impl Algorithm for KnomialGet {
    const NAME: &'static str = "knomial_get";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "largest_first", values: &[0, 1], range: (0, 1) },
        Parameter { name: "radix", values: &[1, 2, 4, 8, 16], range: (1, 1 << 16) },
    ];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let largest_first = Self::parameter(candidate, 0)? == 1;
        let radix = u32::try_from(Self::parameter(candidate, 1)?).unwrap_or(u32::MAX);
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        let (buffer, element) =
            (setting.capabilities.buffer_bytes, setting.call.element_bytes.max(1));
        let chunk = if bytes <= buffer { bytes } else { buffer / 2 / element * element };
        if chunk < bytes.min(element) {
            let why = format!("elements of {element} B do not fit a message buffer of {buffer} B");
            return Err(Self::incapable(why));
        }
        let chunks = Step::try_from(bytes.div_ceil(chunk.max(1)).max(1));
        let chunks = chunks.map_err(|_| Self::incapable("there are too many chunks"))?;
        let shape = Shape::Knomial(radix);
        let fan = shape.fan(pes);
        let ordered = setting.call.class == OperatorClass::Ordered;
        if ordered && largest_first && fan > 1 {
            return Err(Self::incapable("largest_first needs a commutative operator"));
        }
        // Channels: 0 for signals that this PE's buffer is taken, one for each child, and one for
        // the result.
        if setting.lines() < fan + 2 {
            return Err(Self::incapable("the inbox is too small"));
        }
        let top = if ordered { Rank(0) } else { root };
        let node = shape.node(rank, top, pes);
        let ready = |index| setting.channel(1 + index);
        let mut children: Box<[Read]> = (0..)
            .zip(node.children)
            .map(|(index, peer)| Read { peer, ready: ready(index) })
            .collect();
        if largest_first {
            children.reverse();
        }
        let mut reader = node.parent.map(|(parent, index)| (parent, ready(index)));
        let mut result = None;
        if top != root && rank == top {
            reader = Some((root, ready(fan)));
        } else if top != root && rank == root {
            result = Some(Read { peer: top, ready: ready(fan) });
        }
        Ok(Schedule {
            bytes,
            chunk,
            chunks,
            keeps: rank == root && result.is_none(),
            copies: radix > 1 || children.is_empty(),
            children,
            reader,
            result,
            taken: setting.channel(0),
        })
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.chunks)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let largest_first = candidate.parameter("largest_first") == Some(1);
        let (shape, all) = (Shape::Knomial(radix.unwrap_or(2)), query.bytes as f64);
        let bytes = if all > BUFFER_BYTES { BUFFER_BYTES / 2.0 } else { all };
        let further = (all / bytes.max(1.0)).ceil().max(1.0) - 1.0;
        let hop = model.hops_ns(1.0, query.pes);
        // Even a few bytes take part of a transfer.
        let pass = (bytes / model.pull_gbps).max(model.transfer_ns / 2.0);
        let pass = pass + model.get_ns + model.overhead_ns;
        let copy = bytes / model.copy_gbps;
        // Besides the signals on the way up, one hop per level: the acknowledgement and the way to
        // the next call. So a tree of one level has three hops, like `direct`. In a row of Loose
        // calls, and for each further chunk, the hops are a PE's signal and its acknowledgement.
        let hops = 2.0 * hop;
        if model.is_shared(query.pes) {
            // The work of all PEs is done one after the other.
            let turns = model.pes_a_core(query.pes);
            let work = (copy + pass) * turns;
            return work + f64::from(shape.depth(query.pes)) * hop + hops + further * (work + hop);
        }
        let chain = radix == Some(1);
        let passes = f64::from(shape.fan(query.pes)) * pass;
        // A PE combines its children's data, then waits until its parent has combined its own.
        let stage = if chain { copy.max(passes) } else { copy + passes } + hops;
        if query.sync == SyncModes::LOOSE {
            return stage * (1.0 + further);
        }
        // The time at which each PE is ready; children have larger ranks than their parents.
        let mut ready = vec![0.0; query.pes as usize];
        for rank in (0..query.pes).rev().map(Rank) {
            let mut children = shape.node(rank, Rank(0), query.pes).children;
            if largest_first {
                children.reverse();
            }
            let own = if chain && !children.is_empty() { 0.0 } else { copy };
            ready[rank.index()] = children
                .iter()
                .fold(own, |time, child| f64::max(time, ready[child.index()] + hop) + pass);
        }
        ready[0] + hops + further * stage
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { chunks, copies, ref children, reader, result, taken, .. } = *schedule;
        for step in 0..chunks {
            let (at, buffer) = schedule.chunk(step);
            let mut left = Span { place: Place::Source, ..at };
            let sum = if schedule.keeps { at } else { buffer };
            if let (Some(_), Some(before)) = (reader, step.checked_sub(2)) {
                f.wait(taken, before).await?;
            }
            if copies {
                f.copy(sum, left).await?;
                left = sum;
            }
            for &Read { peer, ready } in children {
                f.wait(ready, step).await?;
                let data = f.reach(peer, buffer);
                f.get_combine(&data, 0, left, sum).await?;
                f.signal(peer, taken, step).await?;
                left = sum;
            }
            if let Some((reader, ready)) = reader {
                f.signal(reader, ready, step).await?;
            }
            if let Some(Read { peer, ready }) = result {
                f.wait(ready, step).await?;
                let data = f.reach(peer, buffer);
                f.get(&data, 0, at).await?;
                f.signal(peer, taken, step).await?;
            }
        }
        if reader.is_some() {
            f.wait(taken, chunks - 1).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Capabilities, Collective};

    use super::*;

    const CAPABILITIES: Capabilities = Capabilities {
        exposes: false,
        buffered: false,
        ..Capabilities::with_memory(256, 8192, 8192)
    };

    fn schedule(
        bytes: u64,
        operator: OperatorClass,
        radix: u64,
        largest_first: u64,
    ) -> Result<Schedule, PlanError> {
        let query = Query {
            collective: Collective::Reduce,
            sync: SyncModes::STRICT,
            pes: 8,
            bytes,
            operator,
            symmetric: false,
        };
        let candidate =
            Candidate::new("knomial_get").with("radix", radix).with("largest_first", largest_first);
        KnomialGet::schedule(&Setting::of(&query, CAPABILITIES), &candidate)
    }

    #[test]
    fn subtrees_come_in_the_requested_order() {
        use OperatorClass::{Commutative, Ordered};
        let order = |operator, radix, largest_first| -> Vec<u32> {
            let schedule = schedule(8, operator, radix, largest_first).expect("it can serve");
            schedule.children.iter().map(|child| child.peer.0).collect()
        };
        assert_eq!(order(Commutative, 2, 0), [1, 2, 4]);
        assert_eq!(order(Commutative, 2, 1), [4, 2, 1]);
        assert_eq!(order(Ordered, 2, 0), [1, 2, 4]);
        assert_eq!(order(Ordered, 1, 1), [1]);
        let refused = schedule(8, Ordered, 2, 1).err().expect("the order of the ranks").to_string();
        assert!(refused.ends_with("largest_first needs a commutative operator"), "{refused}");
    }

    #[test]
    fn data_is_chunked_only_if_it_exceeds_the_buffer() {
        let chunks = |bytes| {
            let schedule = schedule(bytes, OperatorClass::Commutative, 2, 0).expect("it can serve");
            (0..schedule.chunks).map(|step| schedule.chunk(step)).collect::<Vec<_>>()
        };
        assert_eq!(chunks(0), [(Span::target(0, 0), Span::buffer(0, 0))]);
        assert_eq!(chunks(8192), [(Span::target(0, 8192), Span::buffer(0, 8192))]);
        assert_eq!(
            chunks(8200),
            [
                (Span::target(0, 4096), Span::buffer(0, 4096)),
                (Span::target(4096, 4096), Span::buffer(4096, 4096)),
                (Span::target(8192, 8), Span::buffer(0, 8)),
            ]
        );
    }
}
