//! Gets between two barriers: each PE loads its blocks straight from its peers' buffers.
//!
//! Idea: this is what a programmer builds from a barrier and shared memory. The reference
//! collectives of GASNet (Bonachea 2004, `gasnete_coll_*_Get`) call it `Get`: a barrier,
//! uncoordinated gets, a barrier. In MPI it is `MPI_Get` between two calls of `MPI_Win_fence` (MPI
//! 4.1, section 12.5.1).
//!
//! Protocol:
//! 1. each PE exposes its source to its readers, then enters a barrier;
//! 2. each PE gets its blocks, or combines them, in rank order and without chunks;
//! 3. a barrier, after which no PE reads a source any more.
//!
//! In symmetric memory nothing is exposed, and mode None needs no barrier.
//!
//! | | `direct` | here |
//! | --- | --- | --- |
//! | waits | for each peer in turn | for all in a barrier, which wakes a PE once |
//! | gets | its own block, then the next rank's | in rank order |
//! | combines | a block of all sources at a time | source by source |
//! | gathers | each PE puts its block | the root gets all blocks |
//!
//! Cost: two barriers, and the loads: all blocks at each PE, one at each, or all at the root.

use std::ops::Range;

use consort_fabric::{
    CallSpec, Candidate, Collective, Fabric, MachineModel, Op, OperatorClass, Query, Rank,
    Rendezvous, Span, SyncMode, SyncModes,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    barrier::{Central, Dissemination, Synchronizer},
    protocols::{direct::passes_ns, exposed::others},
    rank_math::dissemination::round_count,
    reduce::combine_in_order,
};

/// See the module documentation.
#[derive(Hash)]
pub struct BarrierGet;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    /// The PEs that load from this PE, if it must expose its source to them.
    readers: Box<[Rank]>,
    /// The PEs from which this PE loads.
    sources: Range<u32>,
    /// A whole source, as this PE exposes or reaches it.
    whole: Span,
    /// The offset of this PE's block in a source.
    at: usize,
    bytes: usize,
    /// The operator's class, if blocks are combined.
    combines: Option<OperatorClass>,
    /// Whether sources are reached without an exposure.
    reaches: bool,
    entry: Option<Synchronizer>,
    exit: Option<Synchronizer>,
}

impl Schedule {
    /// Attaches or reaches the source of a peer.
    async fn attach<F: Rendezvous>(&self, f: &F, peer: Rank) -> Op<F::Remote> {
        if self.reaches { Ok(f.reach(peer, self.whole)) } else { f.attach(peer, 0).await }
    }
}

/// Returns the PEs from which `rank` loads.
fn sources(&CallSpec { collective, pes, root, .. }: &CallSpec, rank: Rank) -> Range<u32> {
    let is_root = rank == root;
    match collective {
        Collective::Broadcast if is_root => 0..0,
        Collective::Broadcast | Collective::Scatter => root.0..root.0 + 1,
        Collective::Gather | Collective::Reduce if !is_root => 0..0,
        Collective::Scan => 0..rank.0 + 1,
        Collective::ExclusiveScan => 0..rank.0,
        _ => 0..pes,
    }
}

/// Returns whether there is a barrier before the loads, and whether there is one after them.
fn barriers(symmetric: bool, SyncModes { entry, exit }: SyncModes) -> [bool; 2] {
    [entry, exit].map(|mode| !symmetric || mode != SyncMode::None)
}

/// Returns the barrier among `pes` PEs; `counts` says whether the fabric has counters. If PEs
/// outnumber cores, the central one takes the fewest turns; two PEs exchange a signal.
fn barrier(pes: u32, counts: bool) -> Candidate {
    if counts && pes > 2 {
        Candidate::new(Central::NAME)
    } else {
        Candidate::new(Dissemination::NAME).with("radix", 2)
    }
}

impl Algorithm for BarrierGet {
    const NAME: &'static str = "barrier_get";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)?;
        let Setting { rank, call, capabilities, first_channel, .. } = *setting;
        let CallSpec { collective, sync, pes, root, bytes, class, symmetric, .. } = call;
        let [entry, exit] = barriers(symmetric, sync);
        let barrier = barrier(pes, capabilities.counts);
        let rounds = if barrier.algorithm == Central::NAME { 1 } else { round_count(pes, 2) };
        let channels = u32::try_from(rounds).unwrap_or(u32::MAX);
        if setting.lines() < channels.saturating_mul(2) {
            return Err(Self::incapable("two barriers do not fit the inbox"));
        }
        let barrier = |is_needed: bool, first_channel| {
            let setting = Setting { first_channel, ..*setting };
            is_needed.then(|| Synchronizer::new(&setting, &barrier, Direction::Neither)).transpose()
        };
        let is_read_by = |reader: &Rank| sources(&call, *reader).contains(&rank.0);
        let readers = others(rank, pes).filter(|reader| !symmetric && is_read_by(reader));
        let own = rank.index() * bytes;
        Ok(Schedule {
            readers: readers.collect(),
            sources: sources(&call, rank),
            whole: match collective {
                // In symmetric memory a broadcast has one buffer: the root's source is at the place
                // of the other PEs' targets.
                Collective::Broadcast if rank != root => Span::target(0, bytes),
                _ => Span::source(0, collective.source_blocks(pes, true) as usize * bytes),
            },
            at: match collective {
                Collective::Scatter | Collective::AllToAll | Collective::ReduceScatter => own,
                _ => 0,
            },
            bytes,
            combines: collective.combines().then_some(class),
            reaches: symmetric,
            entry: barrier(entry, first_channel)?,
            exit: barrier(exit, first_channel + channels)?,
        })
    }

    fn synchronizes(schedule: &Schedule) -> bool {
        schedule.entry.is_some() || schedule.exit.is_some()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (query.pes, query.bytes as f64);
        let (others, in_turn) = (f64::from(pes) - 1.0, model.pes_a_core(pes));
        // In rank order, PEs that run at the same time load from the same PE.
        let readers = model.cores_of(pes) - 1.0;
        let gets = |readers| others * (model.pulled_ns(bytes, readers) + model.overhead_ns);
        let own = bytes / model.copy_gbps;
        let combining = |readers| passes_ns(query, bytes.max(1.0), model, readers);
        let loads = match query.collective {
            Collective::Gather => gets(1.0) + own,
            Collective::AllGather | Collective::AllToAll => (gets(readers) + own) * in_turn,
            Collective::Reduce => combining(1.0),
            Collective::AllReduce | Collective::ReduceScatter => combining(readers) * in_turn,
            // As in the scan `direct`.
            Collective::Scan | Collective::ExclusiveScan => {
                combining(readers / 2.0) * (in_turn / 2.0).max(1.0)
            }
            _ => model.pulled_ns(bytes, readers) * (others / model.cores_of(pes)).max(1.0),
        };
        // A line with the address of a source, and one that counts its readers.
        let lines = 2.0 * (model.transfer_ns + (others - 1.0).max(0.0) * model.next_line_ns);
        let exposures = if query.symmetric { 0.0 } else { lines };
        let barrier = match barrier(pes, true) {
            central if central.algorithm == Central::NAME => {
                Central::cost_ns(query, &central, model)
            }
            signals => Dissemination::cost_ns(query, &signals, model),
        };
        let [entry, exit] =
            barriers(query.symmetric, query.sync).map(|one| f64::from(u8::from(one)));
        // The hop is from the end of this call to the next one, as in `direct`.
        model.hops_ns(1.0, pes) + (entry + exit) * barrier + exposures + loads
    }

    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { readers, sources, entry, exit, .. } = schedule;
        let Schedule { whole, at, bytes, combines, .. } = *schedule;
        for &reader in readers {
            f.expose_without_wake(reader, 0, whole).await?;
        }
        if let Some(entry) = entry {
            entry.run(f).await?;
        }
        let own = Span::source(at, bytes);
        if let Some(class) = combines {
            let mut remotes = Vec::with_capacity(sources.len());
            for peer in sources.clone().map(Rank) {
                remotes.push(if peer == f.rank() {
                    None
                } else {
                    Some(schedule.attach(f, peer).await?)
                });
            }
            if bytes > 0 {
                combine_in_order(f, &remotes, own, Span::target(0, bytes), class).await?;
            }
            for remote in remotes.into_iter().flatten() {
                f.detach_without_wake(remote).await?;
            }
        } else {
            for (index, peer) in sources.clone().map(Rank).enumerate() {
                let target = Span::target(index * bytes, bytes);
                if peer == f.rank() {
                    f.copy(target, own).await?;
                } else {
                    let remote = schedule.attach(f, peer).await?;
                    f.get(&remote, at, target).await?;
                    f.detach_without_wake(remote).await?;
                }
            }
        }
        if let Some(exit) = exit {
            exit.run(f).await?;
        }
        if readers.is_empty() { Ok(()) } else { f.await_detached().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::tests::with_lines;

    fn schedule(setting: &Setting) -> Result<Schedule, PlanError> {
        BarrierGet::schedule(setting, &Candidate::new(BarrierGet::NAME))
    }

    #[test]
    fn modes_of_symmetric_memory_decide_which_barriers_there_are() {
        let plain = with_lines(Collective::AllGather, 8);
        for sync in SyncModes::every() {
            for symmetric in [false, true] {
                let setting = Setting { call: CallSpec { sync, symmetric, ..plain.call }, ..plain };
                let Schedule { entry, exit, readers, .. } = schedule(&setting).expect("it serves");
                let is_needed = |mode| !symmetric || mode != SyncMode::None;
                let expected = [sync.entry, sync.exit].map(is_needed);
                assert_eq!([entry.is_some(), exit.is_some()], expected, "{sync}");
                assert_eq!(readers.len(), if symmetric { 0 } else { 3 }, "{sync}");
            }
        }
    }

    #[test]
    fn inbox_without_room_for_two_barriers_is_refused() {
        for (counts, least) in [(true, 2), (false, 4)] {
            let is_served = |lines| {
                let mut setting = with_lines(Collective::Reduce, lines);
                setting.capabilities.counts = counts;
                schedule(&setting).is_ok()
            };
            assert!(is_served(least) && !is_served(least - 1), "counters: {counts}");
        }
    }

    /// A PE that exposed its source to a PE that does not attach it would wait forever.
    #[test]
    fn readers_are_the_pes_that_load_from_a_pe() {
        let pes = 5;
        for collective in Collective::regulars().filter(|&one| one != Collective::Barrier) {
            let plain = with_lines(collective, 8);
            let call = CallSpec { pes, root: Rank(3), symmetric: false, ..plain.call };
            let of = |rank| schedule(&Setting { call, rank, ..plain }).expect("it serves");
            let all: Vec<Schedule> = (0..pes).map(Rank).map(of).collect();
            for (owner, reader) in (0..pes).flat_map(|owner| (0..pes).map(move |r| (owner, r))) {
                let reads = owner != reader && all[reader as usize].sources.contains(&owner);
                let exposes = all[owner as usize].readers.contains(&Rank(reader));
                assert_eq!(reads, exposes, "{collective}: PE {reader} from PE {owner}");
            }
        }
    }
}
