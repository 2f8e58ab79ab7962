//! Puts and gets of a single core, without load and with load on a link of the mesh: the
//! experiments of Petrović 2015, sections 4.1.2 and 4.1.3.

use anyhow::{Context, Result, anyhow};
use consort::Rank;
use consort_fabric::{Rma, Span};
use consort_sim::{Buffer, Call, Operands, Pe, Simulation};

/// A kind of transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// From a peer's message buffer to the core's own.
    Get,
    /// From the core's own message buffer to a peer's.
    Put,
    /// From a peer's message buffer to memory.
    GetToMemory,
    /// From memory to a peer's message buffer.
    PutFromMemory,
}

impl Transfer {
    async fn run(self, call: &Call<'_>, peer: Rank, bytes: usize) -> consort_fabric::Op {
        let buffer = Span::buffer(0, bytes);
        let remote = call.reach(peer, buffer);
        match self {
            Self::Get => call.get(&remote, 0, buffer).await,
            Self::Put => call.put(&remote, 0, buffer).await,
            Self::GetToMemory => call.get(&remote, 0, Span::target(0, bytes)).await,
            Self::PutFromMemory => call.put(&remote, 0, Span::source(0, bytes)).await,
        }
    }

    /// Repeats the transfer for `window_ns`. Returns nothing if there are no such buffers.
    pub(super) async fn repeat(
        self,
        pe: &Pe<'_>,
        peer: Rank,
        bytes: usize,
        window_ns: f64,
    ) -> Option<Repeated> {
        let call = pe.begin(Operands::NONE).await;
        let (began_ns, mut count) = (pe.now_ns(), 0.0);
        while pe.now_ns() < began_ns + window_ns {
            self.run(&call, peer, bytes).await.ok()?;
            count += 1.0;
        }
        Some(Repeated { mean_ns: (pe.now_ns() - began_ns) / count, count })
    }
}

/// The result of a repeated transfer.
pub(super) struct Repeated {
    pub(super) mean_ns: f64,
    count: f64,
}

fn operands(bytes: usize) -> Operands<'static> {
    let memory = || Buffer::Owned(vec![0; bytes]);
    Operands { source: memory(), target: memory(), ..Operands::NONE }
}

/// Returns the time of a transfer between core 0 and `peer`, in nanoseconds, while all other cores
/// are idle. The memory is not in the caches.
///
/// # Errors
/// When the machine does not have this core, or has no message buffers of this size.
pub fn transfer_ns(
    simulation: &Simulation,
    transfer: Transfer,
    peer: Rank,
    bytes: usize,
) -> Result<f64> {
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        if pe.rank() != Rank(0) {
            return None;
        }
        let call = pe.begin(operands(bytes)).await;
        let began_ns = pe.now_ns();
        transfer.run(&call, peer, bytes).await.ok()?;
        Some(pe.now_ns() - began_ns)
    })?;
    outcome.results.into_iter().flatten().next().context("core 0 ended early")
}

/// The work of the cores while a link is under load.
#[derive(Clone, Copy)]
pub struct Load<'l> {
    /// The timed core, and the core whose buffer it gets from.
    pub timed: (Rank, Rank),
    /// For each core, the core whose buffer it repeatedly gets from, if it does.
    pub from: &'l dyn Fn(Rank) -> Option<Rank>,
}

/// The result of the load.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The mean time of the timed core's gets, in nanoseconds.
    pub mean_ns: f64,
    /// The number of gets that the other cores completed.
    pub others: f64,
}

/// Makes cores get for `window_ns`, and times one of them.
///
/// # Errors
/// When the machine has too few cores, or no message buffers of this size.
pub fn loaded(
    simulation: &Simulation,
    load: Load<'_>,
    bytes: usize,
    window_ns: f64,
) -> Result<Loaded> {
    let (timed, source) = load.timed;
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let from = if pe.rank() == timed { Some(source) } else { (load.from)(pe.rank()) };
        let Some(from) = from else { return Some(0.0) };
        let Repeated { mean_ns, count } = Transfer::Get.repeat(pe, from, bytes, window_ns).await?;
        Some(if pe.rank() == timed { mean_ns } else { count })
    })?;
    let all: Option<Vec<f64>> = outcome.results.into_iter().collect();
    let all = all.ok_or_else(|| anyhow!("a core ended early"))?;
    let mean_ns = *all.get(timed.index()).context("the machine has no such core")?;
    Ok(Loaded { mean_ns, others: all.iter().sum::<f64>() - mean_ns })
}
