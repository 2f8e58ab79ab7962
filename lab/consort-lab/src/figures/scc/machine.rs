//! The Intel SCC, simulated, and the broadcasts that run on it.

use anyhow::{Result, bail};
use consort::tune::Candidate;
use consort_sim::{
    Effects, Simulation,
    machines::{Kind, Machine, MessageBuffers},
};

use super::super::measure::broadcast;
use crate::simulation::Program;
use consort_bench::harness::Mode;

/// The machine's name.
pub const MACHINE: &str = "scc";
pub(super) const CORES: u32 = 48;
pub(super) const LINE_BYTES: usize = 32;
/// A message of 1 MB.
pub(super) const MEGABYTE_LINES: usize = 32768;
/// A slice of one chunk for each core, as in the thesis' formula for scatter-allgather.
pub(super) const SLICES_LINES: usize = 48 * 96;
/// The numbers of calls: the median of single calls, and calls in a row.
pub(super) const CALLS: u64 = 5;
pub(super) const CALLS_IN_A_ROW: u64 = 24;

/// With distances and contention.
pub(super) const RAW: Effects = Effects::PUBLISHED;
/// With contention for links as well.
pub(super) const WITH_LINKS: Effects = Effects { links: true, ..RAW };
/// With distances, without contention.
pub(super) const UNCONTENDED: Effects = Effects { contention: false, ..RAW };
/// All distances 1, without contention, as in the formulas.
pub(super) const AS_FORMULAS: Effects = Effects { distances: false, ..UNCONTENDED };
/// With distances, contention and fitted parameters.
pub(super) const FITTED: Effects = Effects { fitted: true, ..RAW };

pub(super) fn simulation(effects: Effects) -> Result<Simulation> {
    Ok(Simulation::on(Machine::find(MACHINE)?, CORES).with(effects))
}

/// Returns the parts and costs of the machine.
pub(super) fn buffers() -> Result<MessageBuffers> {
    match Machine::find(MACHINE)?.kind {
        Kind::MessageBuffers(buffers) => Ok(buffers),
        kind => bail!("{MACHINE} is {}", kind.name()),
    }
}

/// Returns the machine with other costs.
pub(super) fn edited(
    effects: Effects,
    edit: impl FnOnce(&mut MessageBuffers),
) -> Result<Simulation> {
    let mut buffers = buffers()?;
    edit(&mut buffers);
    let machine = Machine { kind: Kind::MessageBuffers(buffers), ..Machine::find(MACHINE)? };
    Ok(Simulation::on(machine, CORES).with(effects))
}

pub(super) fn oc_bcast(k: u64) -> Candidate {
    Candidate::new("oc_bcast").with("k", k).with("chunk_bytes", 96 * LINE_BYTES as u64)
}

/// Returns the binomial broadcast of RCCE_comm. Its sends wait for their receivers and go through
/// the senders' message buffers.
pub(super) fn binomial() -> Candidate {
    Candidate::new("two_sided_binomial")
}

/// Returns the broadcast of RCCE_comm for long messages.
pub(super) fn scatter_allgather() -> Candidate {
    Candidate::new("two_sided_scatter_allgather")
}

/// Returns the time of a broadcast, in microseconds.
pub(super) fn broadcast_us(
    effects: Effects,
    mode: Mode,
    candidate: Candidate,
    lines: usize,
) -> Result<f64> {
    let calls = match mode {
        _ if lines > 4096 => 1,
        Mode::Latency => CALLS,
        Mode::Throughput => CALLS_IN_A_ROW,
    };
    let query = broadcast(CORES, lines * LINE_BYTES);
    let program = Program { mode, calls, ..Program::once(query, &candidate) };
    Ok(program.simulate_on(&simulation(effects)?)?.call_ns(mode)? / 1e3)
}

pub(super) fn latency_us(effects: Effects, candidate: Candidate, lines: usize) -> Result<f64> {
    broadcast_us(effects, Mode::Latency, candidate, lines)
}

/// Returns the throughput of calls in a row, in 10^6 B/s.
pub(super) fn throughput_mbps(effects: Effects, candidate: Candidate, lines: usize) -> Result<f64> {
    let us = broadcast_us(effects, Mode::Throughput, candidate, lines)?;
    Ok((lines * LINE_BYTES) as f64 / us)
}
