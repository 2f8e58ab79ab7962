//! The futures of all algorithms on the threads fabric may move to another thread.
//!
//! The compiler knows whether a future is `Send` only for a concrete algorithm. So the algorithms
//! are listed here by type, and a test compares the list with the registry.

use std::collections::BTreeSet;

use consort_collectives::{
    Algorithm,
    barrier::Synchronizer,
    compose::{PartFabric, Sub},
};
use consort_native::CallView;

fn is_send<T: Send>(_: T) {}

/// Never called: compiling it is the test. The list of names is compiled along with it.
macro_rules! futures_are_send {
    ($($collective:ident in $($path:ident)::+: $($algorithm:ident)*;)*) => {$(
        mod $collective {
            use super::{Algorithm, CallView, PartFabric, Sub, is_send};
            use consort_collectives::$($path)::+::{$($algorithm),*};

            pub(super) const NAMES: &[&str] = &[$($algorithm::NAME),*];

            #[test]
            fn calls_may_move_between_threads() {
                $({
                    type Schedule = <$algorithm as Algorithm>::Schedule;
                    let check: fn(&'static Schedule, &'static CallView<'static>) =
                        |schedule, call| is_send($algorithm::run(call, schedule));
                    let _ = check;
                    // As a part of an algorithm in two levels, which keeps parts in boxes whose
                    // type does not say that they may move.
                    type Parts = PartFabric<'static, CallView<'static>, Sub>;
                    let check: fn(&'static Schedule, &'static Parts) =
                        |schedule, part| is_send($algorithm::run(part, schedule));
                    let _ = check;
                })*
            }
        }
    )*};
}

futures_are_send! {
    all_gather in all_gather: AllBroadcast Bruck Direct Flat NeighbourExchange RecursiveDoubling
        Ring;
    all_gather_vector in all_gather::vector: Direct;
    all_reduce in all_reduce: Chain Direct Flat Knomial OcBcast Pipelined Rabenseifner
        RecursiveDoubling Ring Shared;
    of_all in barrier_get: BarrierGet;
    barrier in barrier: Central Dissemination Flat Knomial;
    broadcast in broadcast: Direct Flat Knomial KnomialPut KnomialRendezvous OcBcast Pipelined
        ScatterAllgather Shared TwoSidedBinomial TwoSidedScatterAllgather;
    all_to_all in all_to_all: Bruck Direct Flat Pairwise;
    all_to_all_vector in all_to_all::vector: Direct TwoPhaseBruck;
    gather in gather: Direct Flat Knomial OcBcast;
    gather_vector in gather::vector: Direct;
    reduce in reduce: Chain Direct Flat Knomial KnomialGet Pipelined Shared;
    reduce_scatter in reduce_scatter: Direct Flat Pairwise RecursiveHalving;
    scan in scan: Direct Linear RecursiveDoubling Shared;
    scatter in scatter: Direct Flat Knomial OcBcast;
    scatter_vector in scatter::vector: Direct;
}

#[test]
fn no_algorithm_is_left_out() {
    use consort::tune::Collective;
    use consort_collectives::{describe, names};

    for collective in Collective::EVERY {
        let listed = match collective {
            Collective::Barrier => barrier::NAMES,
            Collective::Broadcast => broadcast::NAMES,
            Collective::Scatter => scatter::NAMES,
            Collective::Gather => gather::NAMES,
            Collective::AllGather => all_gather::NAMES,
            Collective::AllToAll => all_to_all::NAMES,
            Collective::Reduce => reduce::NAMES,
            Collective::AllReduce => all_reduce::NAMES,
            Collective::ReduceScatter => reduce_scatter::NAMES,
            Collective::Scan | Collective::ExclusiveScan => scan::NAMES,
            Collective::ScatterVector => scatter_vector::NAMES,
            Collective::GatherVector => gather_vector::NAMES,
            Collective::AllGatherVector => all_gather_vector::NAMES,
            Collective::AllToAllVector => all_to_all_vector::NAMES,
        };
        // A composed algorithm runs the parts above, and has nothing else while it waits. The
        // fabric's own algorithms serve no nonblocking call. Those of all collectives are listed
        // once.
        let is_of_parts = |name: &str| {
            describe(collective, name).expect("it is known").parts.iter().any(Option::is_some)
        };
        let is_once = |name: &str| name == "vendor" || of_all::NAMES.contains(&name);
        let is_here = |name: &&str| !is_once(name) && !is_of_parts(name);
        let sorted =
            |names: &[&'static str]| names.iter().copied().filter(is_here).collect::<BTreeSet<_>>();
        assert_eq!(sorted(listed), sorted(names(collective)), "{collective}: list it above");
    }
}

/// The barriers before and after an algorithm.
#[test]
fn entry_and_exit_barriers_are_send() {
    let check: fn(&'static Synchronizer, &'static CallView<'static>) =
        |barrier, call| is_send(barrier.run(call));
    let _ = check;
}

#[test]
fn call_and_remote_are_send() {
    fn check<T: Send + Sync>() {}
    check::<CallView<'_>>();
    check::<consort_native::Remote>();
    check::<consort_native::Engine>();
}

/// The other data of an operation; its launch relies on these to assert that its future is `Send`.
#[test]
fn started_call_is_send() {
    fn check<T: Send>() {}
    check::<consort_native::StartedCall>();
}
