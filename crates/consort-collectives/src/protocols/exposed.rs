//! Exposed buffers: a PE lets some peers read one of its buffers, and reads the same buffer of
//! other peers.
//!
//! | | |
//! | --- | --- |
//! | `expose` | signals each reader that the buffer may be read |
//! | `attach` | waits for a peer's buffer |
//! | `detach` | signals the peer that its buffer has been read |
//! | `await_detached` | waits for the signals of all readers |
//!
//! The modes of the call decide which of these signals are needed; see `rendezvous`. This is the
//! rendezvous get of the GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section
//! 3.3.2). Here a PE may get data from many peers.

use consort_fabric::{MachineModel, Messages, Op, Query, Rank, Rendezvous, Span};

use super::rendezvous::Access;
use crate::{Direction, Setting};

/// An exposed buffer, its readers, and the way of access.
#[derive(Hash)]
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

    /// Exposes `span` to all other PEs, beginning with the next rank, so that no two PEs begin with
    /// the same one.
    #[must_use]
    pub fn to_all(setting: &Setting, span: Span) -> Option<Self> {
        Self::new(setting, span, others(setting.rank, setting.call.pes))
    }

    /// Returns the model's estimate for exposing a buffer to all peers and attaching theirs,
    /// without the reads, in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, model: &MachineModel) -> f64 {
        Access::cost_ns(query, Direction::Neither, model)
    }

    /// Exposes the buffer to its readers.
    ///
    /// # Errors
    /// If the job has failed; also in all methods below.
    #[inline(always)]
    pub async fn expose<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        for &reader in &self.readers {
            self.access.expose(f, reader, self.span).await?;
        }
        Ok(())
    }

    /// Attaches the buffer of a peer once it may be read.
    ///
    /// # Errors
    /// As [`Self::expose`].
    ///
    /// # Panics
    /// As [`Access::attach`].
    #[inline(always)]
    pub fn attach<F: Messages + Rendezvous>(
        &self,
        f: &F,
        peer: Rank,
    ) -> impl Future<Output = Op<F::Remote>> {
        self.access.attach(f, peer, self.span)
    }

    /// Detaches the buffer of a peer after reading.
    ///
    /// # Errors
    /// As [`Self::expose`].
    #[inline(always)]
    pub fn detach<F: Messages + Rendezvous>(
        &self,
        f: &F,
        peer: Rank,
        remote: F::Remote,
    ) -> impl Future<Output = Op> {
        self.access.detach(f, peer, remote)
    }

    /// Attaches the buffers of the first `count` PEs and returns them by rank, with `None` for this
    /// PE.
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
    pub fn await_detached<F: Messages + Rendezvous>(&self, f: &F) -> impl Future<Output = Op> {
        self.access.await_detached(f, self.readers.iter().copied())
    }
}

/// A source of blocks, exposed to all other PEs; each PE gets its block from it.
#[derive(Hash)]
pub struct ExposedBlocks {
    exposed: Exposed,
    /// Bytes of a block.
    bytes: usize,
}

impl ExposedBlocks {
    /// Exposes a source of `blocks` blocks on every PE. Returns `None` if the fabric cannot expose
    /// buffers.
    #[must_use]
    pub fn new(setting: &Setting, blocks: u32) -> Option<Self> {
        let bytes = setting.call.bytes;
        let exposed = Exposed::to_all(setting, Span::source(0, blocks as usize * bytes))?;
        Some(Self { exposed, bytes })
    }

    /// Returns the model's estimate of [`Self::get`], in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.get_ns + model.overhead_ns)
            + bytes / model.copy_gbps;
        Exposed::cost_ns(query, model) + work * model.pes_a_core(query.pes)
    }

    /// Gets block `index` of each PE's source into the target, which is in rank order. Copies this
    /// PE's own block first, then gets the others, beginning with the PE after this one.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn get<F: Messages + Rendezvous>(&self, f: &F, index: u32) -> Op {
        let Self { ref exposed, bytes } = *self;
        let at = index as usize * bytes;
        let block = |of: Rank| Span::target(of.index() * bytes, bytes);
        exposed.expose(f).await?;
        f.copy(block(f.rank()), Span::source(at, bytes)).await?;
        for peer in others(f.rank(), f.size()) {
            let data = exposed.attach(f, peer).await?;
            f.get(&data, at, block(peer)).await?;
            exposed.detach(f, peer, data).await?;
        }
        exposed.await_detached(f).await
    }
}

/// Returns the other PEs, beginning with the rank after `rank` and wrapping around.
pub fn others(rank: Rank, pes: u32) -> impl Iterator<Item = Rank> {
    (1..pes).map(move |distance| rank.plus(distance as usize, pes as usize))
}
