//! Combining directly from peers' buffers: shared by the `direct` algorithms of several
//! collectives.

use consort_fabric::{
    Candidate, MachineModel, Messages, Op, OperatorClass, Query, Rendezvous, Span,
};

use super::exposed::Exposed;
use crate::{Algorithm, Parameter, PlanError, Setting, reduce::combine_in_order};

/// The only parameter: the number of bytes that a PE combines from all peers before it continues
/// with the next ones.
pub(crate) const PARAMETERS: &[Parameter] =
    &[Parameter { name: "block_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];

/// A longer block is no longer in the core's nearest caches in the second pass.
const CACHED_BYTES: f64 = 65536.0;

/// One PE's schedule: it exposes its source, and combines a part of the sources of other PEs.
#[derive(Hash)]
pub struct Schedule {
    /// The offset of the part in a source.
    first: usize,
    bytes: usize,
    block: usize,
    class: OperatorClass,
    /// The number of PEs whose sources this PE combines.
    inputs: u32,
    exposed: Exposed,
}

impl Schedule {
    /// Creates the schedule of algorithm `A` for a part that begins at `first` in each source.
    pub(crate) fn new<A: Algorithm>(
        setting: &Setting,
        candidate: &Candidate,
        (first, inputs): (usize, u32),
        exposed: Option<Exposed>,
    ) -> Result<Self, PlanError> {
        A::check_names(candidate)?;
        let wanted = usize::try_from(A::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let exposed = exposed.ok_or(A::incapable("the fabric cannot expose buffers"))?;
        let (bytes, class) = (setting.call.bytes, setting.call.class);
        let element = setting.call.element_bytes.max(1);
        // A block is at most all of the data: larger parameters give the same schedule.
        let block = ((wanted / element).max(1) * element).min(bytes.max(element));
        Ok(Self { first, bytes, block, class, inputs, exposed })
    }

    /// Exposes, combines in rank order, and leaves when no peer reads any more.
    #[inline(always)]
    pub(crate) async fn run<F: Messages + Rendezvous>(&self, f: &F) -> Op {
        let Self { first, bytes, block, class, inputs, ref exposed } = *self;
        exposed.expose(f).await?;
        let remotes = exposed.attach_all(f, inputs).await?;
        for at in (0..bytes).step_by(block) {
            let sum = Span::target(at, block.min(bytes - at));
            let own = Span::source(first + at, sum.bytes);
            combine_in_order(f, &remotes, own, sum, class).await?;
        }
        exposed.detach_all(f, remotes).await?;
        exposed.await_detached(f).await
    }
}

/// Returns the time to combine all PEs' blocks if `readers` PEs read a source at a time.
pub(crate) fn work_ns(
    query: &Query,
    candidate: &Candidate,
    model: &MachineModel,
    readers: f64,
) -> f64 {
    passes_ns(query, candidate.parameter("block_bytes").unwrap_or(16384) as f64, model, readers)
}

/// Returns the same for blocks of `block` bytes.
pub(crate) fn passes_ns(query: &Query, block: f64, model: &MachineModel, readers: f64) -> f64 {
    let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
    let again = if block > CACHED_BYTES { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
    let each = model.get_ns + model.overhead_ns;
    let blocks = (bytes / block).ceil() * each * others;
    others * model.pulled_ns(bytes, readers) + again + blocks
}
