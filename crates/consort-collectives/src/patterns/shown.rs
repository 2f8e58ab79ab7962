//! Buffers shown: a PE lets some peers read one of its buffers, and reads the same of some peers.
//!
//! | | where buffers are lent | in symmetric memory |
//! | --- | --- | --- |
//! | `show` | lends it to each reader | entry Mine: tells each reader that this PE is here |
//! | `open` | borrows a peer's | entry Mine: waits until the peer is here |
//! | `close` | gives it back | exit Mine: tells the peer that it is read |
//! | `end` | waits until all is back | exit Mine: waits until all readers have told |
//!
//! In symmetric memory modes None and All need no word: data may move, or all have entered; and the
//! buffer may be in use until all have left, or a barrier follows. It is the rendezvous get of the
//! GASNet collectives (Nishtala and Yelick 2009, section 2), from many peers.

use consort_fabric::{Fabric, MachineModel, Mode, Op, Query, Rank, Slot, Span, Step};

use crate::Setting;

/// What a PE tells its readers, and those whom it has read.
const HERE: Step = 0;
const READ: Step = 1;

/// A buffer shown, and how.
#[derive(Debug)]
pub struct Shown {
    span: Span,
    readers: Box<[Rank]>,
    words: Option<Words>,
}

/// What is said where nothing is lent.
#[derive(Clone, Copy, Debug)]
struct Words {
    /// Whether PEs say that they are here.
    here: bool,
    /// Whether PEs say that they have read.
    read: bool,
    /// Where a PE hears from PE 0; from PE `r` it is `r` slots later.
    first: Slot,
}

impl Words {
    const fn from(self, peer: Rank) -> Slot {
        Slot::new(self.first.index() + peer.0)
    }
}

impl Shown {
    /// Steps of a call.
    pub const STEPS: u64 = 2;

    /// Shows `span`, which is as long on every PE, to `readers`. `None` if the fabric cannot lend,
    /// or the inbox is too small.
    #[must_use]
    pub fn new(
        setting: &Setting,
        span: Span,
        readers: impl IntoIterator<Item = Rank>,
    ) -> Option<Self> {
        let Setting { pes, sync, symmetric, capabilities, .. } = *setting;
        (capabilities.lending && setting.lines() >= pes).then_some(())?;
        let words = symmetric.then(|| Words {
            here: sync.entry == Mode::Mine,
            read: sync.exit == Mode::Mine,
            first: setting.slot(0),
        });
        Some(Self { span, readers: readers.into_iter().collect(), words })
    }

    /// The same to everyone else, from the PE after this one on: no two then begin with one PE.
    #[must_use]
    pub fn to_all(setting: &Setting, span: Span) -> Option<Self> {
        Self::new(setting, span, others(setting.rank, setting.pes))
    }

    /// What showing to `readers`, and reading as many peers' buffers, costs by the model, apart
    /// from the reading.
    #[must_use]
    pub fn cost_ns(query: &Query, readers: f64, model: &MachineModel) -> f64 {
        let Query { sync, symmetric, pes, .. } = *query;
        let word = (readers - 1.0).max(0.0) * model.next_line_ns;
        if !symmetric {
            return model.hops_ns(3.0, pes) + 2.0 * word;
        }
        let said = [sync.entry, sync.exit].into_iter().filter(|&mode| mode == Mode::Mine);
        // Measured between two PEs: what the fences of a call and its turns cost besides.
        model.transfer_ns / 2.0 + said.map(|_| model.hops_ns(1.0, pes) + word).sum::<f64>()
    }

    /// Lets the readers read.
    ///
    /// # Errors
    /// When the job has failed; so do all that follow.
    #[inline(always)]
    pub async fn show<F: Fabric>(&self, f: &F) -> Op {
        for &reader in &self.readers {
            match self.words {
                None => f.lend(reader, 0, self.span).await?,
                Some(words) if words.here => f.signal(reader, words.from(f.rank()), HERE).await?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The buffer of a peer, once it may be read.
    ///
    /// # Errors
    /// As [`Self::show`].
    ///
    /// # Panics
    /// When the call's buffers are not symmetric, and the setting said so.
    #[inline(always)]
    pub async fn open<F: Fabric>(&self, f: &F, peer: Rank) -> Op<F::Lease> {
        let Some(words) = self.words else { return f.borrow(peer, 0).await };
        if words.here {
            f.wait(words.from(peer), HERE).await?;
        }
        Ok(f.reach(peer, self.span).expect("symmetric buffers are reached without asking"))
    }

    /// The buffer of a peer is read.
    ///
    /// # Errors
    /// As [`Self::show`].
    #[inline(always)]
    pub async fn close<F: Fabric>(&self, f: &F, peer: Rank, lease: F::Lease) -> Op {
        match self.words {
            None => f.give_back(lease).await,
            Some(words) if words.read => f.signal(peer, words.from(f.rank()), READ).await,
            Some(_) => Ok(()),
        }
    }

    /// The buffers of the first `count` PEs, by their ranks; none for the own one.
    ///
    /// # Errors
    /// As [`Self::show`].
    ///
    /// # Panics
    /// As [`Self::open`].
    #[inline(always)]
    pub async fn open_all<F: Fabric>(&self, f: &F, count: u32) -> Op<Vec<Option<F::Lease>>> {
        let mut leases = Vec::with_capacity(count as usize);
        for peer in (0..count).map(Rank) {
            let is_own = peer == f.rank();
            leases.push(if is_own { None } else { Some(self.open(f, peer).await?) });
        }
        Ok(leases)
    }

    /// The buffers that [`Self::open_all`] gave are read.
    ///
    /// # Errors
    /// As [`Self::show`].
    #[inline(always)]
    pub async fn close_all<F: Fabric>(&self, f: &F, leases: Vec<Option<F::Lease>>) -> Op {
        for (peer, lease) in (0..).map(Rank).zip(leases) {
            if let Some(lease) = lease {
                self.close(f, peer, lease).await?;
            }
        }
        Ok(())
    }

    /// Waits until no reader reads any more, as far as the exit mode asks for that.
    ///
    /// # Errors
    /// As [`Self::show`].
    #[inline(always)]
    pub async fn end<F: Fabric>(&self, f: &F) -> Op {
        match self.words {
            None => f.reclaim().await,
            Some(words) if words.read => {
                for &reader in &self.readers {
                    f.wait(words.from(reader), READ).await?;
                }
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }
}

/// The other PEs, from the one after `rank` on.
pub fn others(rank: Rank, pes: u32) -> impl Iterator<Item = Rank> {
    (1..pes).map(move |distance| rank.plus(distance.into(), pes))
}
