//! The checked arguments, as a list of programs to simulate.

use consort_console::require;
use std::collections::BTreeMap;

use crate::simulation::{Conditions, Program};
use anyhow::Result;
use consort::{
    Rank,
    sync_modes::SyncModes,
    tune::{Candidate, Collective, Query},
};
use consort_bench::{harness::Mode, query_json::sums, units};
use consort_collectives::estimate_ns;
use consort_sim::{
    Effects, Simulation,
    machines::{Kind, Machine},
};

use super::super::named;
use super::{
    arguments::{MOST_BYTES, Sim},
    candidates::{Requested, candidates},
};

/// The largest size of a sweep.
const SWEEP_BYTES: usize = 1 << 20;
/// The default size in addition to a single line.
const USUAL_BYTES: usize = 8 << 10;
/// The largest number of PEs in a picture of their timelines.
const DRAWN_PES: u32 = 256;
/// The line size of machines whose descriptions have none.
const LINE_BYTES: usize = 64;
/// An algorithm that the model estimates this many times slower than the best is simulated only if
/// it is named.
const TOO_SLOW: f64 = 10.0;
/// Bytes in an element of a reduction. Sizes are multiples of it.
const ELEMENT_BYTES: usize = 8;

/// The simulations to run.
pub(super) struct Options {
    pub(super) conditions: Conditions,
    pub(super) simulation: Simulation,
    /// The programs, by size, then by algorithm.
    pub(super) programs: Vec<Program>,
    /// The reasons why algorithms are left out.
    pub(super) left_out: Vec<String>,
}

impl Options {
    pub(super) fn of(sim: &Sim) -> Result<Options> {
        let machine = named::machine(&sim.machine)?;
        let most = machine.pes();
        let pes = sim.pes.unwrap_or(most);
        require!(pes <= most, "--pes {pes}: {} has {most} PEs", machine.name);
        require!(
            sim.root.is_none() || sim.what.is_rooted(),
            "--root: {} has no root",
            article(sim.what)
        );
        require!(
            !sim.uneven || sim.what.is_vector(),
            "--uneven: the blocks of {} have one length",
            article(sim.what)
        );
        let root = sim.root.unwrap_or(0);
        require!(root < pes, "--root {root}: the ranks of {pes} PEs are 0 to {}", pes - 1);
        let query = sums(sim.what, sync(sim)?, pes, 0, false);
        let program = Program {
            root: Rank(root),
            mode: sim.mode,
            calls: sim.calls.unwrap_or(usual_calls(sim)),
            uneven: sim.uneven,
            ..Program::once(query, &Candidate::new(""))
        };
        let conditions = Conditions {
            line_bytes: line_bytes(&machine),
            machine,
            seed: sim.seed,
            effects: Effects {
                contention: !sim.uncontended,
                distances: !sim.near,
                fitted: sim.fitted,
                ..Effects::PUBLISHED
            },
        };
        let simulation = Simulation::on(conditions.machine.clone(), pes)
            .seed(conditions.seed)
            .with(conditions.effects);
        let simulation = if is_seen(sim) { simulation.traced() } else { simulation };
        let (programs, left_out) =
            programs(sim, &program, &conditions.machine, conditions.line_bytes, &simulation)?;
        require!(
            !is_seen(sim) || programs.len() == 1,
            "a trace or picture shows one simulation, but these are {}: name one --algorithm and \
             one size",
            programs.len()
        );
        require!(
            sim.picture.is_none() || pes <= DRAWN_PES,
            "--picture: {pes} PEs do not fit; use --pes with at most {DRAWN_PES}"
        );
        Ok(Options { conditions, simulation, programs, left_out })
    }
}

/// Returns whether single steps are written or drawn.
fn is_seen(sim: &Sim) -> bool {
    sim.trace.is_some() || sim.picture.is_some()
}

/// Returns the default number of calls. Random delays make calls differ a little. In a row, every
/// fourth call gives credits.
fn usual_calls(sim: &Sim) -> u64 {
    match sim.mode {
        _ if is_seen(sim) => 1,
        Mode::Latency => 3,
        Mode::Throughput => 9,
    }
}

fn line_bytes(machine: &Machine) -> usize {
    match &machine.kind {
        Kind::MessageBuffers(machine) => machine.line_bytes,
        Kind::Coherent(machine) => machine.line_bytes,
        Kind::Cluster(_) => LINE_BYTES,
    }
}

/// Returns the number of blocks in the buffers of all PEs.
fn blocks(what: Collective, pes: u32) -> usize {
    let of =
        |is_root| (what.source_blocks(pes, is_root) + what.target_blocks(pes, is_root)) as usize;
    of(true) + (pes as usize - 1) * of(false)
}

/// Returns the name of a collective with its article.
fn article(what: Collective) -> String {
    let article = if what.name().starts_with(['a', 'e']) { "an" } else { "a" };
    format!("{article} {what}")
}

/// Returns the modes. A barrier has one mode, and no bytes.
fn sync(sim: &Sim) -> Result<SyncModes> {
    if sim.what != Collective::Barrier {
        return Ok(sim.sync.unwrap_or(SyncModes::MINE));
    }
    require!(
        sim.sync.is_none_or(|sync| sync == SyncModes::STRICT),
        "--sync: a barrier is always strict"
    );
    let sized = !sim.lines.is_empty() || !sim.bytes.is_empty() || sim.sweep;
    require!(!sized, "a barrier moves no data: leave out --lines, --bytes and --sweep");
    Ok(SyncModes::STRICT)
}

fn sizes_bytes(sim: &Sim, line_bytes: usize) -> Vec<usize> {
    let in_lines = |lines: &[usize]| lines.iter().map(|lines| lines * line_bytes).collect();
    if sim.what == Collective::Barrier {
        vec![0]
    } else if sim.sweep {
        let size = |power: u32| Some(line_bytes << power).filter(|&size| size <= SWEEP_BYTES);
        (0..).map_while(size).collect()
    } else if !sim.lines.is_empty() {
        in_lines(&sim.lines)
    } else if !sim.bytes.is_empty() {
        sim.bytes.clone()
    } else {
        in_lines(&[1, USUAL_BYTES.div_ceil(line_bytes)])
    }
}

/// Returns a program like `blank` for each size and candidate.
fn programs(
    sim: &Sim,
    blank: &Program,
    machine: &Machine,
    line_bytes: usize,
    simulation: &Simulation,
) -> Result<(Vec<Program>, Vec<String>)> {
    let Query { collective: what, pes, .. } = blank.query;
    let requested =
        Requested { named: &sim.algorithm, values: &sim.param, every_value: sim.all_algorithms };
    let capabilities = simulation.capabilities()?;
    let model = machine.model(pes);
    let (mut programs, mut left_out) = (Vec::new(), Vec::new());
    let mut too_slow: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for bytes in sizes_bytes(sim, line_bytes) {
        let shown = units::size(bytes as u64);
        require!(
            !what.combines() || bytes % ELEMENT_BYTES == 0,
            "{shown} are not multiples of {ELEMENT_BYTES} B, the size of a reduction's elements"
        );
        let longest = bytes.checked_mul(1 + usize::from(sim.uneven));
        let memory = longest.and_then(|bytes| bytes.checked_mul(blocks(what, pes)));
        let memory = memory.filter(|&memory| memory <= MOST_BYTES);
        require!(
            memory.is_some(),
            "{shown} are too large for {pes} simulated PEs: their buffers may take {} in total",
            units::size(MOST_BYTES as u64)
        );
        let blank =
            Program { query: Query { bytes: bytes as u64, ..blank.query }, ..blank.clone() };
        let mut found = candidates(what, &blank.setting(capabilities), requested)?;
        if requested.is_all() {
            let estimate_ns = |one: &Candidate| estimate_ns(&blank.query, one, &model);
            for name in drop_slow(&mut found.able, estimate_ns) {
                too_slow.entry(name).or_default().push(shown.clone());
            }
        }
        let program = |candidate| Program { candidate, ..blank.clone() };
        programs.extend(found.able.into_iter().map(program));
        left_out.extend(found.unable.iter().map(ToString::to_string));
    }
    left_out.extend(too_slow.into_iter().map(|(name, sizes)| {
        let of_sizes = match what {
            Collective::Barrier => String::new(),
            _ => format!(" of {}", sizes.join(", ")),
        };
        format!(
            "{name}{of_sizes}: the model estimates more than {TOO_SLOW}x the best; --algorithm \
             {name} simulates it"
        )
    }));
    left_out.sort_unstable();
    left_out.dedup();
    Ok((programs, left_out))
}

/// Removes the candidates that the model estimates far slower than the best. Returns their
/// algorithms.
fn drop_slow(
    candidates: &mut Vec<Candidate>,
    estimate_ns: impl Fn(&Candidate) -> f64,
) -> Vec<String> {
    let best_ns = candidates.iter().map(&estimate_ns).fold(f64::INFINITY, f64::min);
    let is_too_slow = |one: &Candidate| estimate_ns(one) > TOO_SLOW * best_ns;
    let mut dropped: Vec<String> =
        candidates.iter().filter(|one| is_too_slow(one)).map(|one| one.algorithm.clone()).collect();
    candidates.retain(|one| !is_too_slow(one));
    dropped.dedup();
    dropped
}
