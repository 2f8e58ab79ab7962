//! Exposed buffers: a PE lets some peers read one of its buffers, and reads the same buffer of some
//! peers.
//!
//! | | |
//! | --- | --- |
//! | `expose` | signals each reader that the buffer may be read |
//! | `attach` | waits for a peer's buffer |
//! | `detach` | signals the peer that its buffer has been read |
//! | `await_detached` | waits for the signals of all readers |
//!
//! The modes of the call decide which of these signals are needed; see `rendezvous`. This is the
//! rendezvous get of the GASNet collectives (Nishtala and Yelick 2009, section 2), from many peers.

use consort_fabric::{MachineModel, Messages, Op, Query, Rank, Rendezvous, Span};

use super::rendezvous::Access;
use crate::{Direction, Setting};

/// An exposed buffer, its readers, and the way of access.
#[derive(Debug)]
pub struct Exposed {
    span: Span,
    readers: Box<[Rank]>,
    access: Access,
}

impl Exposed {
    /// Exposes `span`, which has the same length on every PE, to `readers`. `None` if the fabric
    /// cannot expose buffers.
    #[must_use]
    pub fn new(
        setting: &Setting,
        span: Span,
        readers: impl IntoIterator<Item = Rank>,
    ) -> Option<Self> {
        let access = Access::new(setting, Direction::Neither)?;
        Some(Self { span, readers: readers.into_iter().collect(), access })
    }

    /// Exposes `span` to all other PEs, beginning with the next rank, so that no two begin with one
    /// PE.
    #[must_use]
    pub fn to_all(setting: &Setting, span: Span) -> Option<Self> {
        Self::new(setting, span, others(setting.rank, setting.call.pes))
    }

    /// The model's estimate for exposing a buffer and attaching as many peers' buffers, without the
    /// reading, in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, model: &MachineModel) -> f64 {
        Access::cost_ns(query, Direction::Neither, model)
    }

    /// The model's estimate for [`Self::get_blocks`], in nanoseconds.
    #[must_use]
    pub fn cost_of_blocks_ns(query: &Query, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
        Self::cost_ns(query, model) + work * model.pes_a_core(query.pes)
    }

    /// Gets a block from every PE's source, which must be exposed to all: `bytes` from offset `at`
    /// on. Writes the blocks into the target by rank: first the own one, then those of the ranks
    /// after this one, wrapping around.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn get_blocks<F: Messages + Rendezvous>(&self, f: &F, at: usize, bytes: usize) -> Op {
        let block = |of: Rank| Span::target(of.index() * bytes, bytes);
        self.expose(f).await?;
        f.copy(block(f.rank()), Span::source(at, bytes)).await?;
        for peer in others(f.rank(), f.size()) {
            let data = self.attach(f, peer).await?;
            f.get(&data, at, block(peer)).await?;
            self.detach(f, peer, data).await?;
        }
        self.await_detached(f).await
    }

    /// Exposes the buffer to its readers.
    ///
    /// # Errors
    /// When the job has failed, as in all methods below.
    #[inline(always)]
    pub async fn expose<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        for &reader in &self.readers {
            self.access.expose(f, reader, self.span).await?;
        }
        Ok(())
    }

    /// Attaches the buffer of a peer, once it may be read.
    ///
    /// # Errors
    /// As [`Self::expose`].
    ///
    /// # Panics
    /// As [`Access::attach`].
    #[inline(always)]
    pub async fn attach<F: Messages + Rendezvous>(&self, f: &F, peer: Rank) -> Op<F::Remote> {
        self.access.attach(f, peer, self.span).await
    }

    /// Detaches the buffer of a peer after reading.
    ///
    /// # Errors
    /// As [`Self::expose`].
    #[inline(always)]
    pub async fn detach<F: Messages + Rendezvous>(
        &self,
        f: &F,
        peer: Rank,
        remote: F::Remote,
    ) -> Op {
        self.access.detach(f, peer, remote).await
    }

    /// Attaches the buffers of the first `count` PEs, by rank; `None` for this PE.
    ///
    /// # Errors
    /// As [`Self::expose`].
    ///
    /// # Panics
    /// As [`Self::attach`].
    #[inline(always)]
    pub async fn attach_all<F: Messages + Rendezvous>(
        &self,
        f: &F,
        count: u32,
    ) -> Op<Vec<Option<F::Remote>>> {
        let mut remotes = Vec::with_capacity(count as usize);
        for peer in (0..count).map(Rank) {
            let is_own = peer == f.rank();
            remotes.push(if is_own { None } else { Some(self.attach(f, peer).await?) });
        }
        Ok(remotes)
    }

    /// Detaches all buffers of [`Self::attach_all`].
    ///
    /// # Errors
    /// As [`Self::expose`].
    #[inline(always)]
    pub async fn detach_all<F: Messages + Rendezvous>(
        &self,
        f: &F,
        remotes: Vec<Option<F::Remote>>,
    ) -> Op {
        for (peer, remote) in (0..).map(Rank).zip(remotes) {
            if let Some(remote) = remote {
                self.detach(f, peer, remote).await?;
            }
        }
        Ok(())
    }

    /// Waits until all readers have detached the buffer, if the exit mode requires that.
    ///
    /// # Errors
    /// As [`Self::expose`].
    #[inline(always)]
    pub async fn await_detached<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        self.access.await_detached(f, self.readers.iter().copied()).await
    }
}

/// The other PEs, from the rank after `rank` on, wrapping around.
pub fn others(rank: Rank, pes: u32) -> impl Iterator<Item = Rank> {
    (1..pes).map(move |distance| rank.plus(distance.into(), pes))
}
