//! Checks the arguments and makes a list of work of them.

use anyhow::Result;
use consort::{Algorithms, Arrival, Candidate, Collective, Fabric, MOST_PES, SyncMode, SyncModes};
use consort_bench::{
    asked::sums,
    harness::{By, Communication, Conditions, Mode, Pattern, Session, Work, sizes_bytes},
    peers::{
        openmp::{self, Library},
        threads,
    },
};
use consort_console::{args, refuse, require, usage};
use consort_tuner::{Catalog, distinct};

use super::arguments::{Bench, Buffers};

/// Sizes unless others are asked for.
const SIZES_BYTES: [usize; 3] = [8, 8 << 10, 1 << 20];
/// Smaller sizes are bound by the transfer, and the clock is too coarse for their bandwidth.
const LEAST_BULK_BYTES: usize = 1024;

/// The work to measure.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) session: Session,
    pub(super) conditions: Conditions,
    /// Whether the buffers lie in symmetric memory.
    pub(super) symmetric: bool,
    /// Empty for a barrier.
    pub(super) sizes_bytes: Vec<usize>,
    /// Those that limits of bandwidth matter to.
    pub(super) bulk_bytes: Vec<usize>,
    /// Whether to compare with MPI.
    pub(super) mpi: bool,
    /// The libraries of OpenMP to compare with.
    pub(super) openmp: Vec<Library>,
}

/// The name of MPI libraries among the peers.
const MPI: &str = "mpi";
/// The name for no peer at all.
const NO_PEER: &str = "none";

impl Options {
    pub(super) fn of(bench: &Bench, what: Communication) -> Result<Options> {
        match what {
            Communication::Collective(what) => Self::of_collective(bench, what),
            Communication::PointToPoint(pattern) => Self::of_pair(bench, pattern),
        }
    }

    fn of_collective(bench: &Bench, what: Collective) -> Result<Options> {
        let pes = bench.pes()?;
        require!((1..=MOST_PES).contains(&pes), "--pes {pes}: there may be 1 to {MOST_PES} PEs");
        require!(bench.fresh > 0, "--fresh 0: at least one buffer is needed");
        require!(
            !bench.rewrite || bench.mode == Mode::Latency,
            "--rewrite is for calls that are timed alone: add --mode latency"
        );
        if let Some(shape) = bench.fabric.shape() {
            require!(
                bench.mode == Mode::Throughput,
                "--mode latency needs a clock that all PEs share: leave it out with --fabric {}",
                bench.fabric
            );
            args::check_environment(bench.fabric)?;
            args::check_processes(shape, pes)?;
        }
        for candidate in &bench.algorithm {
            let described = Algorithms::of(bench.fabric).describe(what, &candidate.algorithm);
            let checked = described.and_then(|described| described.check(candidate));
            checked.map_err(usage::of_asked)?;
        }
        let syncs = syncs(bench, what)?;
        let symmetric = symmetric(bench, &syncs)?;
        let peers = peers(bench, Communication::Collective(what))?;
        let work = work(bench, what, pes, &syncs, symmetric, &peers.threads)?;
        Ok(Self::new(bench, pes, work, symmetric, peers))
    }

    /// Of operations between two PEs.
    fn of_pair(bench: &Bench, pattern: Pattern) -> Result<Options> {
        let name = pattern.name();
        let is_usual = bench.fresh == 1 && !bench.rewrite && bench.buffers.is_none();
        let algorithms = bench.all_algorithms || !bench.algorithm.is_empty();
        let is_apart = bench.mode == Mode::Latency || bench.arrival == Arrival::Skewed;
        require!(
            is_usual && !algorithms && !is_apart && bench.sync.is_empty(),
            "{name} takes sizes, fabric, waiting, MPI, budget and class alone"
        );
        let pes = bench.pes_or(2)?;
        require!(pes == 2, "--pes {pes}: {name} is between 2 PEs");
        if let Some(shape) = bench.fabric.shape() {
            args::check_environment(bench.fabric)?;
            require!(
                shape.pes_each == 1,
                "--fabric {}: {name} is between 2 processes, of one PE each",
                bench.fabric
            );
        }
        let [usual, most] = pattern.bytes();
        if let Some(bytes) = bench.bytes.iter().find(|&&bytes| bytes > most) {
            refuse!("--bytes {bytes}: a message of {name} has at most {most} bytes");
        }
        let sizes = if bench.bytes.is_empty() { &[usual] } else { &bench.bytes[..] };
        let work = sizes.iter().map(|&bytes| Work::PointToPoint(pattern, bytes)).collect();
        let peers = peers(bench, Communication::PointToPoint(pattern))?;
        Ok(Self::new(bench, pes, work, true, peers))
    }

    fn new(bench: &Bench, pes: u32, work: Vec<Work>, symmetric: bool, peers: Peers) -> Options {
        let sizes = sizes_bytes(&work);
        Options {
            bulk_bytes: sizes.iter().copied().filter(|&bytes| bytes >= LEAST_BULK_BYTES).collect(),
            sizes_bytes: sizes,
            session: Session {
                fabric: bench.fabric,
                pes,
                waiting: bench.waiting,
                work,
                mode: bench.mode,
                budget: bench.budget,
            },
            conditions: Conditions {
                arrival: bench.arrival,
                buffers: bench.fresh,
                rewrite: bench.rewrite,
            },
            symmetric,
            mpi: peers.mpi,
            openmp: peers.openmp,
        }
    }
}

/// The libraries to compare with.
struct Peers {
    /// Indices of thread libraries.
    threads: Vec<usize>,
    openmp: Vec<Library>,
    mpi: bool,
}

fn peers(bench: &Bench, what: Communication) -> Result<Peers> {
    let names = threads::names();
    let of_openmp = Library::EVERY.map(Library::name);
    let known = [&names[..], &of_openmp, &[MPI, NO_PEER]].concat();
    if let Some(unknown) = bench.peers.iter().find(|name| !known.contains(&name.as_str())) {
        refuse!("--peers {unknown}: there are {}", known.join(", "));
    }
    // Libraries of threads are no peers of processes, and have no operations on others' memory.
    let collective = match what {
        Communication::Collective(what) if bench.fabric == Fabric::Threads => Some(what),
        _ => None,
    };
    if let Some(name) = bench.peers.iter().find(|name| ![MPI, NO_PEER].contains(&name.as_str())) {
        let pattern = matches!(what, Communication::PointToPoint(_));
        require!(
            !pattern,
            "--peers {name}: it has collectives alone; beside {what} there is {MPI}"
        );
        require!(
            collective.is_some(),
            "--peers {name}: it is between threads; beside processes there is {MPI}"
        );
    }
    let is_named = |name: &str| bench.peers.iter().any(|asked| asked == name);
    let is_asked = |name: &str| bench.peers.is_empty() || is_named(name);
    require!(
        bench.mpi.is_empty() || is_asked(MPI),
        "--mpi names an MPI library, which --peers leaves out: add {MPI} to it"
    );
    let serves = bench.peers.is_empty() && collective.is_some_and(openmp::serves);
    let of_openmp = |library: &Library| serves || is_named(library.name());
    Ok(Peers {
        threads: (0..names.len())
            .filter(|&index| collective.is_some() && is_asked(names[index]))
            .collect(),
        openmp: Library::EVERY.into_iter().filter(of_openmp).collect(),
        mpi: is_asked(MPI) && !bench.no_mpi,
    })
}

/// A barrier has one mode, and no bytes.
fn syncs(bench: &Bench, what: Collective) -> Result<Vec<SyncModes>> {
    if what != Collective::Barrier {
        return Ok(if bench.sync.is_empty() { vec![SyncModes::MINE] } else { bench.sync.clone() });
    }
    let strict = bench.sync.iter().all(|&sync| sync == SyncModes::STRICT);
    require!(strict, "--sync: a barrier is always strict");
    require!(bench.bytes.is_empty(), "--bytes: a barrier moves no data");
    require!(bench.buffers.is_none(), "--buffers: a barrier moves no data");
    require!(!bench.rewrite, "--rewrite: a barrier moves no data");
    require!(bench.fresh == 1, "--fresh: a barrier moves no data");
    Ok(vec![SyncModes::STRICT])
}

/// Whether the buffers lie in symmetric memory.
fn symmetric(bench: &Bench, syncs: &[SyncModes]) -> Result<bool> {
    let leaves_early = syncs.iter().find(|sync| sync.exit == SyncMode::None);
    if let (Some(Buffers::Private), Some(sync)) = (bench.buffers, leaves_early) {
        refuse!(
            "--sync {sync} may return before its data has moved, which private slices do not \
             allow: use --buffers symmetric"
        );
    }
    Ok(bench.buffers == Some(Buffers::Symmetric) || leaves_early.is_some())
}

/// By size, then Consort's algorithms in all modes, then the peers.
fn work(
    bench: &Bench,
    collective: Collective,
    pes: u32,
    syncs: &[SyncModes],
    symmetric: bool,
    peers: &[usize],
) -> Result<Vec<Work>> {
    let sizes = match collective {
        Collective::Barrier => vec![0],
        _ if bench.bytes.is_empty() => SIZES_BYTES.to_vec(),
        _ => bench.bytes.clone(),
    };
    let mut work = Vec::new();
    for bytes in sizes {
        let query = |sync| sums(collective, sync, pes, bytes, symmetric);
        for &sync in syncs {
            let query = query(sync);
            let asked: Vec<Option<Candidate>> = if bench.all_algorithms {
                let algorithms = Algorithms::of(bench.fabric);
                distinct(algorithms, &query, algorithms.candidates(&query)).map(Some).collect()
            } else if bench.algorithm.is_empty() {
                vec![None]
            } else {
                bench.algorithm.iter().cloned().map(Some).collect()
            };
            work.extend(asked.into_iter().map(|by| Work::Call(query, By::Consort(by))));
        }
        let query = query(SyncModes::STRICT);
        work.extend(peers.iter().map(|&index| Work::of_peer(&query, index)));
    }
    Ok(work)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{super::arguments::What, *};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: Bench,
    }

    fn options(words: &str) -> Result<Options> {
        let words = ["bench"].into_iter().chain(words.split_whitespace());
        let bench = Line::try_parse_from(words)?.bench;
        let What::Communication(what) = bench.what else { panic!("no other workload") };
        Options::of(&bench, what)
    }

    fn refused(words: &str) -> String {
        options(words).unwrap_err().to_string()
    }

    #[test]
    fn every_size_mode_and_algorithm_is_crossed_with_the_others() {
        let options = options(
            "reduce --bytes 8,8k --sync strict,loose --algorithm flat \
             --algorithm chain(chunk_bytes=1024)",
        )
        .unwrap();
        assert_eq!(options.sizes_bytes, [8, 8192]);
        assert!(options.symmetric);
        let ours = |work: &&Work| matches!(work, Work::Call(_, By::Consort(_)));
        assert_eq!(options.session.work.iter().filter(ours).count(), 2 * 2 * 2);
        let peers = 2 * threads::names().len();
        assert_eq!(options.session.work.len(), 8 + peers);
    }

    #[test]
    fn all_algorithms_are_those_that_can_serve() {
        let options = options("barrier --all-algorithms --pes 2").unwrap();
        let named = |name: &str| {
            let mut candidates = options.session.work.iter().filter_map(Work::candidate);
            candidates.any(|(_, candidate)| candidate.algorithm == name)
        };
        assert!(named("flat") && named("dissemination") && !named("direct"));
    }

    #[test]
    fn peers_are_those_that_are_asked_for() {
        let of = |words: &str| {
            let options = options(words).unwrap();
            let is_peer = |work: &&Work| matches!(work, Work::Call(_, By::Peer(_)));
            let peers = options.session.work.iter().filter(is_peer).count();
            (peers, options.openmp.len(), options.mpi)
        };
        let (threads, openmp) = (threads::names().len(), Library::EVERY.len());
        assert_eq!(of("barrier"), (threads, openmp, true));
        assert_eq!(of("barrier --no-mpi"), (threads, openmp, false));
        assert_eq!(of("barrier --peers hurdles,std"), (2, 0, false));
        assert_eq!(of("barrier --peers mpi"), (0, 0, true));
        assert_eq!(of("barrier --peers libgomp"), (0, 1, false));
        assert_eq!(of("barrier --peers none"), (0, 0, false));
        assert_eq!(of("broadcast --bytes 8"), (threads, 0, true), "OpenMP has no broadcast");
        assert_eq!(of("broadcast --bytes 8 --peers libomp"), (0, 1, false), "so it says why");
        assert_eq!(of("barrier --fabric processes"), (0, 0, true));
        assert_eq!(of("barrier --fabric processes --peers none"), (0, 0, false));
        assert_eq!(of("put-rate"), (0, 0, true), "threads have no puts");
        assert_eq!(of("put-signal --fabric mpi --peers none"), (0, 0, false));
        assert!(refused("put-rate --peers std").contains("beside put-rate there is mpi"));
        assert!(refused("barrier --fabric processes --peers std").contains("between threads"));
        assert_eq!(of("barrier --fabric mpi:2 --pes 4"), (0, 0, true));
        let mode = refused("barrier --fabric mpi --pes 2 --mode latency");
        assert!(mode.contains("a clock that all PEs share"), "{mode}");
        let pes = refused("barrier --fabric mpi:2 --pes 3");
        assert!(pes.contains("a multiple of 2"), "{pes}");
        let names = "std, hurdles, libgomp, libomp, mpi, none";
        assert!(refused("barrier --peers rayon").contains(names));
        assert!(refused("barrier --peers std --mpi /usr/bin/mpirun").contains("add mpi"));
    }

    #[test]
    fn puts_are_between_two_pes() {
        let sizes = |words: &str| {
            let Options { session, sizes_bytes, .. } = options(words).unwrap();
            assert_eq!((session.pes, session.work.len()), (2, sizes_bytes.len()), "{words}");
            sizes_bytes
        };
        assert_eq!(sizes("put-signal"), [8]);
        assert_eq!(sizes("put-rate --bytes 8,1k --fabric processes"), [8, 1024]);
        assert_eq!(sizes("put-bandwidth --fabric mpi --pes 2"), [1 << 20]);
        for (words, why) in [
            ("put-rate --pes 3", "--pes 3: put-rate is between 2 PEs"),
            ("put-rate --fabric mpi --pes 3", "--pes 3: put-rate is between 2 PEs"),
            ("put-rate --pes 2,4", "use one number"),
            ("put-signal --fabric mpi:2 --pes 2", "between 2 processes, of one PE each"),
            ("put-rate --bytes 128k", "put-rate has at most 65536 bytes"),
        ] {
            let error = refused(words);
            assert!(error.contains(why), "{words}: {error}");
        }
        for beyond in [
            "--sync strict",
            "--mode latency",
            "--arrival skewed",
            "--fresh 2",
            "--rewrite",
            "--buffers private",
            "--algorithm flat",
            "--all-algorithms",
        ] {
            let error = refused(&format!("put-signal {beyond}"));
            assert!(error.contains("put-signal takes sizes, fabric"), "{beyond}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        assert!(refused("barrier --bytes 8").contains("moves no data"));
        assert!(refused("barrier --sync loose").contains("always strict"));
        assert!(refused("reduce --rewrite").contains("--mode latency"));
        assert!(refused("reduce --sync loose --buffers private").contains("symmetric"));
        assert!(refused("reduce --pes 0").contains("1 to"));
        assert!(refused("reduce --bytes 12").contains("multiple of 8"));
        assert!(refused("reduce --algorithm ring").contains("no algorithm `ring`"));
        assert!(refused("reduce --algorithm flat(radix=2)").contains("no parameter"));
        assert!(refused("reduce --algorithm knomial").contains("needs radix"));
        assert!(refused("shuffle").contains("no collective"));
    }
}
