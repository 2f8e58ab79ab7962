//! Buffers shown: a PE lets some peers read one of its buffers, and reads the same of some peers.
//!
//! | | |
//! | --- | --- |
//! | `show` | tells each reader that the buffer may be read |
//! | `open` | waits for a peer's |
//! | `close` | tells the peer that it is read |
//! | `end` | waits until all readers have told |
//!
//! What is told, and what need not be, is a matter of `access`. It is the rendezvous get of the
//! GASNet collectives (Nishtala and Yelick 2009, section 2), from many peers.

use consort_fabric::{Fabric, MachineModel, Op, Query, Rank, Span};

use super::access::Access;
use crate::{Direction, Setting};

/// A buffer shown, and how.
#[derive(Debug)]
pub struct Shown {
    span: Span,
    readers: Box<[Rank]>,
    access: Access,
}

impl Shown {
    /// Shows `span`, which is as long on every PE, to `readers`. `None` if the fabric cannot lend.
    #[must_use]
    pub fn new(
        setting: &Setting,
        span: Span,
        readers: impl IntoIterator<Item = Rank>,
    ) -> Option<Self> {
        let access = Access::new(setting, Direction::Neither)?;
        Some(Self { span, readers: readers.into_iter().collect(), access })
    }

    /// The same to everyone else, from the PE after this one on: no two then begin with one PE.
    #[must_use]
    pub fn to_all(setting: &Setting, span: Span) -> Option<Self> {
        Self::new(setting, span, others(setting.rank, setting.pes))
    }

    /// What showing, and reading as many peers' buffers, costs by the model, apart from the
    /// reading.
    #[must_use]
    pub fn cost_ns(query: &Query, model: &MachineModel) -> f64 {
        Access::cost_ns(query, Direction::Neither, model)
    }

    /// Lets the readers read.
    ///
    /// # Errors
    /// When the job has failed; so do all that follow.
    #[inline(always)]
    pub async fn show<F: Fabric>(&self, f: &F) -> Op {
        for &reader in &self.readers {
            self.access.show(f, reader, self.span).await?;
        }
        Ok(())
    }

    /// The buffer of a peer, once it may be read.
    ///
    /// # Errors
    /// As [`Self::show`].
    ///
    /// # Panics
    /// As [`Access::take`].
    #[inline(always)]
    pub async fn open<F: Fabric>(&self, f: &F, peer: Rank) -> Op<F::Lease> {
        self.access.take(f, peer, self.span).await
    }

    /// The buffer of a peer is read.
    ///
    /// # Errors
    /// As [`Self::show`].
    #[inline(always)]
    pub async fn close<F: Fabric>(&self, f: &F, peer: Rank, lease: F::Lease) -> Op {
        self.access.end(f, peer, lease).await
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
        self.access.settle(f, self.readers.iter().copied()).await
    }
}

/// The other PEs, from the one after `rank` on.
pub fn others(rank: Rank, pes: u32) -> impl Iterator<Item = Rank> {
    (1..pes).map(move |distance| rank.plus(distance.into(), pes))
}
