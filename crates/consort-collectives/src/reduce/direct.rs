//! Direct reduction: the root combines from everyone's buffers.
//!
//! Idea: between threads a contribution needs no copy. Each PE lends its source, and the root reads
//! and combines in one pass, a block at a time, so that partial results stay in its cache. It is
//! the flat tree of Nishtala and Yelick 2009, section 4, where the root "accumulates the values
//! from all the other threads".
//!
//! Protocol:
//! 1. each PE lends its source to the root (loan 0) and leaves when it is given back;
//! 2. the root, for each block, combines the contributions in the order of the ranks;
//! 3. the root gives all back. In symmetric memory, a PE that may leave early only says that it is
//!    here, and leaves.
//!
//! In symmetric memory with no mode Mine nothing is said at all: data may move, or all have
//! entered, when the root has; and PEs leave at once, or wait for all in any case. (Two PEs whose
//! bracket is one signal say what they do otherwise.)
//!
//! Cost: `P - 1` passes over the message at the root, two transfers.

use consort_fabric::{
    Candidate, Fabric, MachineModel, Mode, Op, OperatorClass, Query, Rank, Slot, Span, Sync,
};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Debug)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    block: usize,
    class: OperatorClass,
    /// Where the root hears that PE `r` is here, if that may leave early: slot `r`; none if it need
    /// not hear.
    here: Option<Box<[Option<Slot>]>>,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        if !setting.capabilities.lending {
            return Err(Self::incapable("the fabric cannot lend buffers"));
        }
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let element = setting.element_bytes.max(1);
        let Sync { entry, exit } = setting.sync;
        // The bracket of two PEs leaves it to the data to tell the root that the other is here.
        let is_bracketed = entry == Mode::All || exit == Mode::All;
        let hears = entry == Mode::Mine || (setting.pes == 2 && is_bracketed);
        let reaches = setting.leaves_early() || (setting.symmetric && !hears && exit == Mode::All);
        let slot = |rank| hears.then(|| setting.slot(rank));
        let here = reaches.then(|| (0..setting.pes).map(slot).collect());
        Ok(Schedule {
            root: setting.root,
            bytes: setting.bytes,
            block: (wanted / element).max(1) * element,
            class: setting.operator,
            here,
        })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (passes, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let block = candidate.parameter("block_bytes").unwrap_or(16384) as f64;
        // From the second pass on a long block has left the caches nearest to the core.
        let again = if block > 65536.0 { (passes - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let blocks = (bytes / block).ceil() * model.overhead_ns * passes;
        let combining = passes * bytes / model.pull_gbps + again + blocks;
        let said = query.sync.entry == Mode::Mine || query.sync.exit == Mode::Mine;
        if query.symmetric && !said && (query.pes > 2 || query.sync == Sync::LOOSE) {
            // Measured between two PEs: what the fences of a call and its turns cost besides.
            return model.transfer_ns / 2.0 + combining;
        }
        if query.symmetric && query.sync.exit == Mode::None {
            return model.transfer_ns / 2.0 + model.overhead_ns * f64::from(query.pes) + combining;
        }
        // Everyone lends to the root, and is told back.
        let loans = 2.0 * (passes - 1.0).max(0.0) * model.next_line_ns;
        model.hops_ns(3.0, query.pes) + loans + combining
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, block, class, ref here } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        if me != root {
            if let Some(here) = here {
                return match here[me.index()] {
                    Some(slot) => f.signal(root, slot, 0).await,
                    None => Ok(()),
                };
            }
            f.lend(root, 0, Span::source(0, bytes)).await?;
            return f.reclaim().await;
        }
        let mut leases = Vec::with_capacity(pes as usize);
        for peer in (0..pes).map(Rank) {
            if peer == me {
                leases.push(None);
            } else if let Some(here) = here {
                if let Some(slot) = here[peer.index()] {
                    f.wait(slot, 0).await?;
                }
                leases.push(Some(f.reach(peer, Span::source(0, bytes))));
            } else {
                leases.push(Some(f.borrow(peer, 0).await?));
            }
        }
        for at in (0..bytes).step_by(block) {
            let sum = Span::target(at, block.min(bytes - at));
            combine_in_order(f, &leases, at, sum, class).await?;
        }
        if here.is_none() {
            for lease in leases.into_iter().flatten() {
                f.give_back(lease).await?;
            }
        }
        Ok(())
    }
}

/// `sum` becomes the combination of all contributions, from `at` on, in the order of the ranks;
/// the own one is where there is no lease. The first two may change places if the operator
/// commutes: the own one then need not be read again.
#[inline(always)]
pub(crate) async fn combine_in_order<F: Fabric>(
    f: &F,
    leases: &[Option<F::Lease>],
    at: usize,
    sum: Span,
    class: OperatorClass,
) -> Op {
    let own = Span::source(at, sum.bytes);
    let mut so_far = None;
    let mut rest = leases;
    if let ([Some(first), None, others @ ..], OperatorClass::Commutative) = (leases, class) {
        f.get_combine(first, at, own, sum).await?;
        so_far = Some(sum);
        rest = others;
    }
    for lease in rest {
        match (so_far, lease) {
            (None, None) => so_far = Some(own),
            (None, Some(lease)) => {
                f.get(lease, at, sum).await?;
                so_far = Some(sum);
            }
            (Some(left), None) => {
                f.combine(sum, left, own).await?;
                so_far = Some(sum);
            }
            (Some(left), Some(lease)) => {
                f.get_combine(lease, at, left, sum).await?;
                so_far = Some(sum);
            }
        }
    }
    if so_far == Some(own) {
        f.copy(sum, own).await?;
    }
    Ok(())
}
