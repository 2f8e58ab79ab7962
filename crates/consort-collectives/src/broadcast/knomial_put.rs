//! Broadcast down a k-nomial tree by puts with signals into symmetric memory.
//!
//! Idea: the sender knows the place of the data at the receiver, so it puts the data there,
//! followed by a signal. No message is copied out of an inbox (Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.3.1). The trees are those of Nishtala and Yelick 2009, section 2.2. With a radix
//! of at least `P`, the root puts to all PEs.
//!
//! Protocol:
//! 1. with entry mode Mine, signal the parent that this PE has entered, so that its memory may be
//!    written;
//! 2. wait until the parent signals that it has put the data;
//! 3. for each child, beginning with the last one, which has the largest subtree: with entry mode
//!    Mine, wait until it has entered; put the data into its buffer, and signal it.
//!
//! Cost: `P - 1` puts and signals, and the depth of the tree on the critical path.

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Rma, Span, SyncMode, SyncModes,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    trees::{Knomial, Tree},
};

#[derive(Hash)]
pub struct KnomialPut;

/// A child, and the channel in which it signals that it has entered, if the mode requires that.
#[derive(Clone, Copy, Hash)]
struct Child {
    peer: Rank,
    entered: Option<Channel>,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    /// The parent, and the channel in which this PE signals that it has entered, if required.
    parent: Option<(Rank, Option<Channel>)>,
    children: Box<[Child]>,
    /// The channel in which a parent signals that the data has arrived.
    arrived: Channel,
}

impl Algorithm for KnomialPut {
    const NAME: &'static str = "knomial_put";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = Knomial::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        if !setting.call.symmetric {
            return Err(Self::incapable("a peer's buffer is known only in symmetric memory"));
        }
        if !setting.capabilities.exposes {
            return Err(Self::incapable("the fabric has no memory that peers write"));
        }
        let (shape, _) = Knomial::of(candidate);
        let (pes, root) = (setting.call.pes, setting.call.root);
        // Channels: 0 for the parent's signal; then one for each child's signal that it has
        // entered.
        let waits = setting.call.sync.entry == SyncMode::Mine;
        let fan = shape.fan(pes);
        if setting.lines() < 1 + if waits { fan } else { 0 } {
            return Err(Self::incapable("the inbox is too small"));
        }
        let entered = |index| waits.then(|| setting.channel(1 + index));
        let node = shape.node(setting.rank, root, pes);
        let child = |(index, peer)| Child { peer, entered: entered(index) };
        Ok(Schedule {
            bytes: setting.call.bytes,
            parent: node.parent.map(|(parent, index)| (parent, entered(index))),
            children: (0..fan).zip(node.children).map(child).rev().collect(),
            arrived: setting.channel(0),
        })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (shape, _) = Knomial::of(candidate);
        let (fan, depth) = (f64::from(shape.fan(query.pes)), f64::from(shape.depth(query.pes)));
        // The data, and the signal, which is a separate message.
        let put = query.bytes as f64 / model.pull_gbps + model.overhead_ns + model.next_line_ns;
        let entered = if query.sync.entry == SyncMode::Mine { 1.0 } else { 0.0 };
        let hop = model.hops_ns(1.0, query.pes);
        if query.sync == SyncModes::LOOSE {
            return fan * put + (model.transfer_ns / 2.0).max(model.overhead_ns);
        }
        let work = fan * put * model.pes_a_core(query.pes);
        (depth + entered) * hop + work + (depth - 1.0).max(0.0) * put
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, parent, ref children, arrived } = *schedule;
        // A broadcast in symmetric memory has one buffer, even as a part of another call: the
        // root's source is at the place of the other PEs' targets.
        let mut data = Span::source(0, bytes);
        if let Some((parent, entered)) = parent {
            if let Some(entered) = entered {
                f.signal(parent, entered, 0).await?;
            }
            f.wait(arrived, 0).await?;
            data = Span::target(0, bytes);
        }
        for &Child { peer, entered } in children {
            if let Some(entered) = entered {
                f.wait(entered, 0).await?;
            }
            let remote = f.reach(peer, data);
            f.put_notify((peer, &remote), 0, data, arrived, 0).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::Collective;

    use super::*;
    use crate::setting::tests::with_lines;

    #[test]
    fn children_signal_entry_only_if_the_mode_needs_it() {
        let candidate = Candidate::new(KnomialPut::NAME).with("radix", 2);
        // PEs signal that they have entered.
        let setting = with_lines(Collective::Broadcast, 3);
        let mine = KnomialPut::schedule(&setting, &candidate).expect("it can serve");
        let peers = mine.children.iter().map(|child| (child.peer.0, child.entered.is_some()));
        assert!(peers.eq([(2, true), (1, true)]), "two children that signal");
        let few = with_lines(Collective::Broadcast, 2);
        assert!(KnomialPut::schedule(&few, &candidate).is_err(), "two children and a parent");
        let mut at_once = few;
        at_once.call.sync.entry = SyncMode::None;
        let at_once = KnomialPut::schedule(&at_once, &candidate).expect("it can serve");
        assert!(at_once.children.iter().all(|child| child.entered.is_none()), "no child signals");
    }

    #[test]
    fn private_buffers_are_refused() {
        let mut setting = with_lines(Collective::Broadcast, 3);
        setting.call.symmetric = false;
        let candidate = Candidate::new(KnomialPut::NAME).with("radix", 2);
        assert!(KnomialPut::schedule(&setting, &candidate).is_err());
    }
}
