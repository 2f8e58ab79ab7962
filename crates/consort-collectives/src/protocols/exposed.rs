//! Exposed buffers: a PE lets some peers read one of its buffers, and reads the same of some peers.
//!
//! | | |
//! | --- | --- |
//! | `expose` | signals each reader that the buffer may be read |
//! | `attach` | waits for a peer's |
//! | `detach` | signals the peer that it is read |
//! | `await_detached` | waits for the signals of all readers |
//!
//! Which signals there are is a matter of `rendezvous`. It is the rendezvous get of the
//! GASNet collectives (Nishtala and Yelick 2009, section 2), from many peers.

use consort_fabric::{MachineModel, Messages, Op, Query, Rank, Rendezvous, Span};

use super::rendezvous::Access;
use crate::{Direction, Setting};

/// An exposed buffer, and how it is.
#[derive(Debug)]
pub struct Exposed {
    span: Span,
    readers: Box<[Rank]>,
    access: Access,
}

impl Exposed {
    /// Exposes `span`, which is as long on every PE, to `readers`. `None` if the fabric cannot
    /// expose it.
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
        Self::new(setting, span, others(setting.rank, setting.call.pes))
    }

    /// What exposing, and attaching as many peers' buffers, costs by the model, apart from the
    /// reading.
    #[must_use]
    pub fn cost_ns(query: &Query, model: &MachineModel) -> f64 {
        Access::cost_ns(query, Direction::Neither, model)
    }

    /// What [`Self::get_blocks`] costs by the model.
    #[must_use]
    pub fn cost_of_blocks_ns(query: &Query, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
        Self::cost_ns(query, model) + work * model.pes_a_core(query.pes)
    }

    /// Gets the block of `bytes` at `at` of everyone's source, which is exposed to all, into the
    /// target: by rank, the own one first, and then from the PE after this one on.
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

    /// Exposes it to the readers.
    ///
    /// # Errors
    /// When the job has failed; so do all that follow.
    #[inline(always)]
    pub async fn expose<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        for &reader in &self.readers {
            self.access.expose(f, reader, self.span).await?;
        }
        Ok(())
    }

    /// The buffer of a peer, once it may be read.
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

    /// The buffer of a peer is read.
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

    /// The buffers of the first `count` PEs, by their ranks; none for the own one.
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

    /// The buffers that [`Self::attach_all`] gave are read.
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

    /// Waits until no reader reads any more, as far as the exit mode asks for that.
    ///
    /// # Errors
    /// As [`Self::expose`].
    #[inline(always)]
    pub async fn await_detached<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        self.access.await_detached(f, self.readers.iter().copied()).await
    }
}

/// The other PEs, from the one after `rank` on.
pub fn others(rank: Rank, pes: u32) -> impl Iterator<Item = Rank> {
    (1..pes).map(move |distance| rank.plus(distance.into(), pes))
}
