//! Direct broadcast: every PE copies from the root's buffer.
//!
//! Idea: between threads a message needs no intermediate copy. The root exposes its buffer, and all
//! PEs get the message from it at the same time. This is the flat topology of Nishtala and Yelick
//! 2009, section 2.2, one-sided (section 1), and the rendezvous get of the GASNet collectives
//! (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.3.2).
//!
//! Protocol:
//! 1. the root exposes its source to each PE (exposure 0), and each attaches it;
//! 2. each gets the whole message into its target, and detaches the buffer;
//! 3. the root leaves when all PEs have detached it. In symmetric memory with exit mode None, the
//!    root exposes nothing: it signals that it has entered, and leaves, in all entry modes. Among
//!    more than two PEs, the other `direct` algorithms have such a signal only in mode Mine.
//!
//! Cost: `P - 1` concurrent copies, two transfers on the critical path.

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Rendezvous, Span, SyncMode,
};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Direct;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    /// The channel in which the root signals that it has entered, if it may leave early.
    here: Option<Channel>,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)?;
        let signals = setting.leaves_early() && setting.lines() > 0;
        let here = signals.then(|| setting.channel(0));
        Ok(Schedule { root: setting.call.root, bytes: setting.call.bytes, here })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let copies = (f64::from(query.pes) - 1.0) / model.cores_of(query.pes);
        let readers = f64::from(model.cores.min(query.pes)) - 1.0;
        let copy = model.pulled_ns(query.bytes as f64, readers) * copies.max(1.0);
        if query.symmetric && query.sync.exit == SyncMode::None {
            return model.transfer_ns / 2.0 + model.overhead_ns * f64::from(query.pes) + copy;
        }
        // The root exposes its buffer to every PE.
        let exposures = 2.0 * (f64::from(query.pes) - 2.0).max(0.0) * model.next_line_ns;
        // A signal that the buffer is exposed, one that it is detached, and one hop to the next
        // call.
        model.hops_ns(3.0, query.pes) + exposures + copy
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, here } = *schedule;
        let me = f.rank();
        let others = (0..f.size()).map(Rank).filter(|&rank| rank != me);
        match here {
            Some(here) if me == root => {
                for peer in others {
                    f.signal(peer, here, 0).await?;
                }
                Ok(())
            }
            Some(here) => {
                f.wait(here, 0).await?;
                // In symmetric memory a broadcast has one buffer: the root's source is at the place
                // of the other PEs' targets.
                let data = f.reach(root, Span::target(0, bytes));
                f.get(&data, 0, Span::target(0, bytes)).await
            }
            None if me == root => {
                for peer in others {
                    f.expose(peer, 0, Span::source(0, bytes)).await?;
                }
                f.await_detached().await
            }
            None => {
                let data = f.attach(root, 0).await?;
                f.get(&data, 0, Span::target(0, bytes)).await?;
                f.detach(data).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::Collective;

    use super::*;
    use crate::setting::tests::with_lines;

    #[test]
    fn signals_are_used_only_if_lines_suffice() {
        let candidate = Candidate::new(Direct::NAME);
        let reaches = |lines| {
            let schedule = Direct::schedule(&with_lines(Collective::Broadcast, lines), &candidate);
            schedule.expect("it can serve").here.is_some()
        };
        assert!(reaches(1) && !reaches(0));
    }
}
