//! Getting at a peer's buffer: on loan, or in symmetric memory without asking.
//!
//! The rendezvous of the GASNet collectives (Nishtala and Yelick 2009, section 2). A loan is lent,
//! taken and given back. In symmetric memory that is left of it which the modes ask for:
//!
//! | mode | what is said |
//! | --- | --- |
//! | entry Mine | the owner tells its users that it is here; else they may begin when they are |
//! | exit Mine | the users tell the owner that they are done; else it need not wait |
//!
//! With mode None nobody cares, and with All a barrier says it. But where the bracket of two PEs is
//! one signal the data has to say the rest: downwards that the root is here, upwards that the other
//! PE is done. Root and owner are one here.

use consort_fabric::{Fabric, MachineModel, Mode, Op, Query, Rank, Slot, Span};

use crate::{Direction, Setting};

/// How PEs get at each other's buffers in a call. Each owner has one, as loan 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By loans.
    Lends,
    /// Without asking.
    Reaches {
        /// Where a PE hears that PE 0 is here, if it has to; of the others in the slots after it.
        here: Option<Slot>,
        /// Where a PE hears that PE 0 is done, if it has to; of the others in the slots after it.
        done: Option<Slot>,
    },
}

fn of(first: Slot, rank: Rank) -> Slot {
    Slot::new(first.index() + rank.0)
}

impl Access {
    /// For an algorithm whose data moves in this direction, between the root's buffer and the other
    /// PEs, or everyone's and everyone. `None` where nothing can be lent.
    #[must_use]
    pub fn new(setting: &Setting, direction: Direction) -> Option<Self> {
        setting.capabilities.lending.then_some(())?;
        if !setting.symmetric || setting.lines() < 2 * setting.pes {
            return Some(Self::Lends);
        }
        let modes = (setting.sync.entry, setting.sync.exit);
        let (here, done) = said(modes, direction, setting.pes);
        Some(Self::Reaches {
            here: here.then(|| setting.slot(0)),
            done: done.then(|| setting.slot(setting.pes)),
        })
    }

    /// An owner shows its buffer to a user.
    ///
    /// # Errors
    /// When the job has failed, as in all that follow.
    #[inline(always)]
    pub async fn show<F: Fabric>(self, f: &F, to: Rank, buffer: Span) -> Op {
        match self {
            Self::Lends => f.lend(to, 0, buffer).await,
            Self::Reaches { here: Some(here), .. } => f.signal(to, of(here, f.rank()), 0).await,
            Self::Reaches { here: None, .. } => Ok(()),
        }
    }

    /// A user gets hold of the owner's buffer, of which it knows the span.
    ///
    /// # Errors
    /// See [`Access::show`].
    ///
    /// # Panics
    /// As [`Fabric::reach`] does: the setting said that the buffers are symmetric, and the call's
    /// are not.
    #[inline(always)]
    pub async fn take<F: Fabric>(self, f: &F, from: Rank, buffer: Span) -> Op<F::Lease> {
        let here = match self {
            Self::Lends => return f.borrow(from, 0).await,
            Self::Reaches { here, .. } => here,
        };
        if let Some(here) = here {
            f.wait(of(here, from), 0).await?;
        }
        Ok(f.reach(from, buffer))
    }

    /// A user is done with the owner's buffer.
    ///
    /// # Errors
    /// See [`Access::show`].
    #[inline(always)]
    pub async fn end<F: Fabric>(self, f: &F, owner: Rank, lease: F::Lease) -> Op {
        match self {
            Self::Lends => f.give_back(lease).await,
            Self::Reaches { done: Some(done), .. } => f.signal(owner, of(done, f.rank()), 0).await,
            Self::Reaches { done: None, .. } => Ok(()),
        }
    }

    /// An owner waits for its users, as far as it must.
    ///
    /// # Errors
    /// See [`Access::show`].
    #[inline(always)]
    pub async fn settle<F: Fabric>(self, f: &F, users: impl Iterator<Item = Rank>) -> Op {
        match self {
            Self::Lends => f.reclaim().await,
            Self::Reaches { done: Some(done), .. } => {
                for user in users {
                    f.wait(of(done, user), 0).await?;
                }
                Ok(())
            }
            Self::Reaches { done: None, .. } => Ok(()),
        }
    }

    /// What it costs by the model, besides the copies.
    #[must_use]
    pub fn cost_ns(query: &Query, direction: Direction, model: &MachineModel) -> f64 {
        let others = f64::from(query.pes) - 1.0;
        let more = (others - 1.0).max(0.0);
        if query.symmetric {
            let (here, done) = said((query.sync.entry, query.sync.exit), direction, query.pes);
            let said = f64::from(u8::from(here)) + f64::from(u8::from(done));
            let words = said * (model.overhead_ns * others + model.next_line_ns * more);
            return model.transfer_ns / 2.0 + model.hops_ns(said, query.pes) + words;
        }
        model.hops_ns(3.0, query.pes) + 2.0 * more * model.next_line_ns
    }
}

/// Whether it is said that owners are here, and that users are done.
fn said((entry, exit): (Mode, Mode), direction: Direction, pes: u32) -> (bool, bool) {
    let is_one_signal = pes == 2 && (entry == Mode::All || exit == Mode::All);
    (
        entry == Mode::Mine || (is_one_signal && direction == Direction::Down),
        exit == Mode::Mine || (is_one_signal && direction == Direction::Up),
    )
}
