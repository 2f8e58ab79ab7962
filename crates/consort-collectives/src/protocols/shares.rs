//! Shares: each PE combines its share of all PEs' data, in the callers' own buffers.
//!
//! | | |
//! | --- | --- |
//! | `attach` | exposes the source and the target to all PEs, and attaches those of all others |
//! | `blocks` | the blocks of this PE's share |
//! | `detach` | detaches all buffers after a fence, and waits until all its own are detached |
//!
//! In place, the target is also the source, and it is exposed once. This is safe, because only one
//! PE reads and writes a given share of all buffers.

use consort_fabric::{
    CallSpec, Candidate, MachineModel, Op, OperatorClass, Place, Query, Rank, Rendezvous, Span,
};

use crate::Setting;

/// One PE's share, and its division into blocks.
#[derive(Clone, Copy, Hash)]
pub struct Shares {
    /// Bytes of a source and of a target.
    bytes: usize,
    /// The buffer that holds this PE's contribution.
    contribution: Place,
    /// The beginning and the end of this PE's share.
    share: (usize, usize),
    /// Bytes of a block.
    block: usize,
    /// The class of the call's operator.
    pub class: OperatorClass,
}

/// The buffers of all PEs, by rank; `None` for this PE.
#[derive(Hash)]
pub struct Buffers<R> {
    /// The contributions.
    pub sources: Vec<Option<R>>,
    /// The results, unless they replace the contributions.
    targets: Option<Vec<Option<R>>>,
}

impl<R> Buffers<R> {
    /// Returns the buffers for the results.
    #[must_use]
    pub fn targets(&self) -> &[Option<R>] {
        self.targets.as_ref().unwrap_or(&self.sources)
    }
}

impl Shares {
    /// Creates shares of about equal length, which are processed in blocks of at most `wanted`
    /// bytes.
    ///
    /// # Errors
    /// If the fabric cannot expose buffers, or a block would be shorter than an element.
    pub fn new(setting: &Setting, wanted: usize) -> Result<Self, &'static str> {
        if !setting.capabilities.exposes {
            return Err("the fabric cannot expose buffers");
        }
        let Setting { rank, call: CallSpec { pes, bytes, element_bytes, class, .. }, .. } =
            *setting;
        let element = element_bytes.max(1);
        let wanted = wanted.min(setting.capabilities.scratch_bytes);
        if wanted < element {
            return Err("an element is larger than a block");
        }
        // Whole elements; shares begin at multiples of a line if elements divide a line.
        let grain = if (64 % element) == 0 { 64 } else { element };
        let each = bytes.div_ceil(pes as usize).next_multiple_of(grain);
        let edge = |index: usize| (index * each).min(bytes);
        Ok(Self {
            bytes,
            contribution: setting.contribution(),
            share: (edge(rank.index()), edge(rank.index() + 1)),
            // A block is at most the share: larger parameters give the same schedule.
            block: (wanted / element * element).min(each.max(element)),
            class,
        })
    }

    /// Returns the model's estimate, in nanoseconds. Each byte of a result is read from every other
    /// PE and written to every other PE; this PE's own bytes are copied.
    #[must_use]
    pub fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let cores = model.cores_of(query.pes);
        let moved = 2.0 * bytes * (pes - 1.0) / model.pull_gbps + bytes / model.copy_gbps;
        let block = candidate.parameter("block_bytes").unwrap_or(16384) as f64;
        let blocks = (bytes / pes / block).ceil().max(1.0);
        // Puts are complete when their owners have replied.
        let gets = (blocks * (pes - 1.0) + 1.0) * model.get_ns;
        let exposures = 4.0 * (pes - 2.0).max(0.0) * model.next_line_ns;
        // A signal that the buffers are exposed, one that they are detached, and one hop to the
        // next call.
        model.hops_ns(3.0, query.pes) + exposures + gets + moved / cores
    }

    /// Returns whether results replace contributions.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.contribution == Place::Target
    }

    /// Returns the blocks of this PE's share, in its contribution.
    pub fn blocks(&self) -> impl Iterator<Item = Span> + use<> {
        let Self { contribution: place, share: (from, to), block, .. } = *self;
        (from..to).step_by(block).map(move |at| Span { place, at, bytes: block.min(to - at) })
    }

    /// Exposes this PE's buffers to all other PEs, and attaches theirs.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn attach<F: Rendezvous>(&self, f: &F) -> Op<Buffers<F::Remote>> {
        let Self { bytes, contribution: place, .. } = *self;
        let is_apart = !self.is_in_place();
        let (me, pes) = (f.rank(), f.size());
        for peer in (0..pes).map(Rank).filter(|&peer| peer != me) {
            f.expose(peer, 0, Span { place, at: 0, bytes }).await?;
            if is_apart {
                f.expose(peer, 1, Span::target(0, bytes)).await?;
            }
        }
        let (mut sources, mut targets) = (Vec::new(), is_apart.then(Vec::new));
        for peer in (0..pes).map(Rank) {
            let is_own = peer == me;
            sources.push(if is_own { None } else { Some(f.attach(peer, 0).await?) });
            if let Some(targets) = &mut targets {
                targets.push(if is_own { None } else { Some(f.attach(peer, 1).await?) });
            }
        }
        Ok(Buffers { sources, targets })
    }

    /// Detaches all buffers, and waits until this PE's buffers are detached.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn detach<F: Rendezvous>(f: &F, buffers: Buffers<F::Remote>) -> Op {
        f.fence().await?;
        let Buffers { sources, targets } = buffers;
        for remote in sources.into_iter().chain(targets.into_iter().flatten()).flatten() {
            f.detach(remote).await?;
        }
        f.await_detached().await
    }
}
