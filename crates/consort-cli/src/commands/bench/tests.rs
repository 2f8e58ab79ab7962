//! The work that the arguments of `barrier` and `collective` request, and arguments that are
//! refused.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use consort::tune::Collective;
use consort_bench::harness::{ServedBy, Work};
use consort_bench::peers::{openmp::Library, threads};

use super::{Bench, BenchSubject, calls::NO_DATA, communication::Plan};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bench: Bench,
}

fn plan(words: &str) -> Result<Plan> {
    let words = ["bench"].into_iter().chain(words.split_whitespace());
    let subject = Line::try_parse_from(words)?.bench.subject;
    let (collective, data, options) = match &subject {
        BenchSubject::Barrier(bench) => (Collective::Barrier, NO_DATA, &bench.options),
        BenchSubject::Collective(bench) => (bench.collective, bench.data()?, &bench.options),
        _ => panic!("another subject"),
    };
    let (pes, peers) = options.checked(collective)?;
    Ok(options.plan(collective, &data, (options.fabric, pes), peers, Duration::ZERO))
}

#[track_caller]
fn refused(words: &str, why: &str) {
    let error = plan(words).err().expect(words).to_string();
    assert!(error.contains(why), "{words}: {error}");
}

#[test]
fn every_size_mode_and_algorithm_is_crossed_with_the_others() {
    let plan = plan(
        "collective reduce --bytes 8,8k --sync strict,loose --algorithm flat \
         --algorithm chain(chunk_bytes=1024)",
    )
    .unwrap();
    assert!(plan.symmetric);
    let ours = |work: &&Work| matches!(work, Work::Call(_, ServedBy::Consort(_)));
    assert_eq!(plan.session.work.iter().filter(ours).count(), 2 * 2 * 2);
    assert_eq!(plan.session.work.len(), 8 + 2 * threads::names().len());
}

#[test]
fn all_algorithms_option_skips_unable_ones() {
    let plan = plan("barrier --all-algorithms --pes 2").unwrap();
    let named = |name: &str| {
        let mut candidates = plan.session.work.iter().filter_map(Work::candidate);
        candidates.any(|(_, candidate)| candidate.algorithm == name)
    };
    assert!(named("flat") && named("dissemination") && !named("direct"));
}

#[test]
fn only_requested_peers_are_measured() {
    let of = |words: &str| {
        let Plan { session, peers, .. } = plan(words).unwrap();
        let is_peer = |work: &&Work| matches!(work, Work::Call(_, ServedBy::Peer(_)));
        let of_threads = session.work.iter().filter(is_peer).count();
        (of_threads, peers.openmp.len(), peers.mpiruns.len())
    };
    let (threads, openmp) = (threads::names().len(), Library::EVERY.len());
    assert_eq!(of("barrier"), (threads, openmp, 1));
    assert_eq!(of("barrier --mpi a/mpirun --mpi b/mpirun"), (threads, openmp, 2));
    assert_eq!(of("barrier --peers hurdles,std"), (2, 0, 0));
    assert_eq!(of("barrier --peers mpi"), (0, 0, 1));
    assert_eq!(of("barrier --peers libgomp"), (0, 1, 0));
    assert_eq!(of("barrier --peers none"), (0, 0, 0));
    assert_eq!(of("collective broadcast --bytes 8"), (threads, 0, 1), "no OpenMP broadcast");
    assert_eq!(of("collective broadcast --bytes 8 --peers libomp"), (0, 1, 0), "to say why");
    assert_eq!(of("barrier --fabric processes"), (0, 0, 1));
    assert_eq!(of("barrier --fabric processes --peers none"), (0, 0, 0));
    assert_eq!(of("barrier --fabric mpi:2 --pes 4"), (0, 0, 1));
    refused("barrier --fabric processes --peers std", "between threads");
    refused("barrier --fabric mpi --pes 2 --mode latency", "a clock that all PEs share");
    refused("barrier --fabric mpi:2 --pes 3", "a multiple of 2");
    refused("barrier --peers rayon", "std, hurdles, libgomp, libomp, mpi, none");
    refused("barrier --peers std --mpi /usr/bin/mpirun", "add mpi");
}

#[test]
fn options_that_contradict_each_other_are_refused_with_advice() {
    refused("barrier --bytes 8", "unexpected argument");
    refused("collective barrier", "use `consort bench barrier`");
    refused("collective reduce --rewrite", "--mode latency");
    refused("collective reduce --sync loose --buffers private", "symmetric");
    refused("collective reduce --pes 0", "1 to");
    refused("collective reduce --bytes 12", "multiple of 8");
    refused("collective reduce --algorithm ring", "no algorithm `ring`");
    refused("collective reduce --algorithm flat(radix=2)", "no parameter");
    refused("collective reduce --algorithm knomial", "needs radix");
    refused("collective shuffle", "unknown collective `shuffle`");
}
