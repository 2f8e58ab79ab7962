//! Direct reduction: the root combines from all PEs' buffers.
//!
//! Idea: between threads a contribution needs no copy. Each PE exposes its source, and the root
//! reads and combines in one pass, a block at a time, so that partial results stay in its cache.
//! This is the flat tree of Nishtala and Yelick 2009, section 4, where the root "accumulates the
//! values from all the other threads".
//!
//! Protocol:
//! 1. each PE exposes its source to the root (exposure 0), and leaves when it is detached;
//! 2. the root combines the contributions to each block in rank order;
//! 3. the root detaches all sources.
//!
//! In symmetric memory, PEs that may leave early (exit None) expose nothing: with entry Mine they
//! signal that they have entered, and leave. Without mode Mine there are no signals. Data may move
//! once the root has entered, because of entry None, or because all PEs have then entered (entry
//! All). PEs leave immediately (exit None), or wait for all in a barrier (exit All). (In a team of
//! two, a barrier is one signal, so the signals of mode Mine are also needed.)
//!
//! Cost: `P - 1` passes over the message at the root, two transfers.

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, OperatorClass, Query, Rank, Rendezvous, Rma,
    Span, SyncMode, SyncModes,
};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Direct;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    block: usize,
    class: OperatorClass,
    /// If the root reaches the sources directly: the channels in which PEs signal that they have
    /// entered, by rank. An entry is `None` if the root need not wait.
    here: Option<Box<[Option<Channel>]>>,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let element = setting.call.element_bytes.max(1);
        let SyncModes { entry, exit } = setting.call.sync;
        // In a team of two, the barriers do not signal the root that the other PE has entered.
        let has_barrier = entry == SyncMode::All || exit == SyncMode::All;
        let waits = entry == SyncMode::Mine || (setting.call.pes == 2 && has_barrier);
        let may_reach =
            setting.leaves_early() || (setting.call.symmetric && !waits && exit == SyncMode::All);
        let reaches = may_reach && setting.lines() >= setting.call.pes;
        let channel = |rank| waits.then(|| setting.channel(rank));
        let here = reaches.then(|| (0..setting.call.pes).map(channel).collect());
        Ok(Schedule {
            root: setting.call.root,
            bytes: setting.call.bytes,
            // A block is at most all of the data: larger parameters give the same schedule.
            block: ((wanted / element).max(1) * element).min(setting.call.bytes.max(element)),
            class: setting.call.class,
            here,
        })
    }

    fn may_replace_source(setting: &Setting) -> bool {
        combines_own_first(setting)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (passes, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let block = candidate.parameter("block_bytes").unwrap_or(16384) as f64;
        // From the second pass on, a long block is no longer in the core's nearest caches.
        let again = if block > 65536.0 { (passes - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let each = model.get_ns + model.overhead_ns;
        let blocks = (bytes / block).ceil() * each * passes;
        let combining = passes * bytes / model.pull_gbps + again + blocks;
        let said = query.sync.entry == SyncMode::Mine || query.sync.exit == SyncMode::Mine;
        if query.symmetric && !said && (query.pes > 2 || query.sync == SyncModes::LOOSE) {
            // Measured between two PEs: the cost of a call in addition to combining, for its fences
            // and waits.
            return model.transfer_ns / 2.0 + combining;
        }
        if query.symmetric && query.sync.exit == SyncMode::None {
            return model.transfer_ns / 2.0 + model.overhead_ns * f64::from(query.pes) + combining;
        }
        // Every PE exposes its buffer to the root, which detaches it.
        let exposures = 2.0 * (passes - 1.0).max(0.0) * model.next_line_ns;
        // A signal that the buffer is exposed, one that it is detached, and one hop to the next
        // call.
        model.hops_ns(3.0, query.pes) + exposures + combining
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, block, class, ref here } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        if me != root {
            if let Some(here) = here {
                return match here[me.index()] {
                    Some(channel) => f.signal(root, channel, 0).await,
                    None => Ok(()),
                };
            }
            f.expose(root, 0, Span::source(0, bytes)).await?;
            return f.await_detached().await;
        }
        let mut remotes = Vec::with_capacity(pes as usize);
        for peer in (0..pes).map(Rank) {
            if peer == me {
                remotes.push(None);
            } else if let Some(here) = here {
                if let Some(channel) = here[peer.index()] {
                    f.wait(channel, 0).await?;
                }
                remotes.push(Some(f.reach(peer, Span::source(0, bytes))));
            } else {
                remotes.push(Some(f.attach(peer, 0).await?));
            }
        }
        for at in (0..bytes).step_by(block) {
            let sum = Span::target(at, block.min(bytes - at));
            let own = Span::source(at, sum.bytes);
            combine_in_order(f, &remotes, own, sum, class).await?;
        }
        if here.is_none() {
            for remote in remotes.into_iter().flatten() {
                f.detach(remote).await?;
            }
        }
        Ok(())
    }
}

/// Returns whether `sum` may be `own` in [`combine_in_order`]: if the first pass combines `own`.
pub(crate) fn combines_own_first(setting: &Setting) -> bool {
    match setting.rank {
        Rank(0) => true,
        Rank(1) => setting.call.class == OperatorClass::Commutative,
        _ => false,
    }
}

/// Combines all contributions in rank order, and stores the result in `sum`. The entry without a
/// remote is this PE's contribution, `own`; all others are at the same offset. The first two take
/// one pass. For this, they may be exchanged if the operator commutes and the second is this PE's.
#[inline(always)]
pub(crate) async fn combine_in_order<F: Rma>(
    f: &F,
    remotes: &[Option<F::Remote>],
    own: Span,
    sum: Span,
    class: OperatorClass,
) -> Op {
    let at = own.at;
    let mut so_far = None;
    let mut rest = remotes;
    match remotes {
        [Some(first), Some(second), others @ ..] => {
            f.get_both_combine(first, second, at, sum).await?;
            (so_far, rest) = (Some(sum), others);
        }
        [Some(first), None, others @ ..] if class == OperatorClass::Commutative => {
            f.get_combine(first, at, own, sum).await?;
            (so_far, rest) = (Some(sum), others);
        }
        _ => {}
    }
    for remote in rest {
        match (so_far, remote) {
            (None, None) => so_far = Some(own),
            (None, Some(remote)) => {
                f.get(remote, at, sum).await?;
                so_far = Some(sum);
            }
            (Some(left), None) => {
                f.combine(sum, left, own).await?;
                so_far = Some(sum);
            }
            (Some(left), Some(remote)) => {
                f.get_combine(remote, at, left, sum).await?;
                so_far = Some(sum);
            }
        }
    }
    if so_far == Some(own) {
        f.copy(sum, own).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use consort_fabric::Collective;

    use super::*;
    use crate::setting::tests::with_lines;

    #[test]
    fn signals_are_used_only_if_lines_suffice() {
        let candidate = Candidate::new(Direct::NAME).with("block_bytes", 16384);
        let reaches = |lines| {
            let schedule = Direct::schedule(&with_lines(Collective::Reduce, lines), &candidate);
            schedule.expect("it can serve").here.is_some()
        };
        assert!(reaches(4) && !reaches(3));
    }
}
