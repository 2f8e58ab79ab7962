//! The thesis' claims on its machines that the simulation reproduces.

use super::{
    containers::Contained,
    delegation::{MAX_OPS, schemes},
    machines::{self, BOTH, TILE_SLOTS, TILES, X86, XEON, on_tile},
    objects::{QUEUES, STACKS},
    queue_locks::LOCKS,
    run::{Point, Setting, Slots, Way},
};

fn tile(way: Way, threads: u32, increments: usize) -> Point {
    on_tile(way, threads, increments).unwrap()
}

#[track_caller]
fn within(found: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&found), "{found}, not from {least} to {most}");
}

/// T8: 1.35 within 12 %, 2 within 25 %, 1.18 within 10 %. The gain over MCS in place of 1.35 is
/// missed: it is smaller.
#[test]
fn hyblock_beats_queue_locks() {
    for (increments, paper, error) in [(1, 1.35, 0.12), (0, 2.0, 0.25), (25, 1.18, 0.1)] {
        let hybrid = tile(Way::HybLock, TILES, increments).mops;
        for way in [Way::Mcs, Way::Clh] {
            let is_missed = increments == 1 && matches!(way, Way::Mcs);
            let ratio = hybrid / tile(way, TILES, increments).mops;
            if is_missed {
                within(ratio, 1.1, paper * (1.0 - error));
                continue;
            }
            within(ratio, paper * (1.0 - error), paper * (1.0 + error));
        }
    }
}

/// Figures 6.4b and 6.7: test-and-set is the fastest lock for a single thread, but a server with
/// messages is faster. With five threads that apply operations, every scheme beats every lock, and
/// a server with messages beats all.
#[test]
fn contention_reverses_locks_and_schemes() {
    let latency = |way: &Way, clients| {
        let servers = u32::from(way.is_served());
        tile(way.clone(), clients + servers, 1).latency_ns()
    };
    let locks = LOCKS.map(|(_, way)| [1, 5].map(|threads| latency(&way, threads)));
    assert!(locks[1..].iter().all(|other| locks[0][0] < other[0]), "{locks:?}");
    let alone = latency(&Way::Mp, 1);
    assert!(alone < 0.9 * locks[0][0], "{alone} and {locks:?}");
    let schemes = schemes(MAX_OPS).map(|(_, way)| latency(&way, 5));
    let of_five = locks.map(|latencies| latencies[1]);
    assert!(of_five.iter().all(|lock| schemes.iter().all(|scheme| scheme < lock)), "{schemes:?}");
    assert!(schemes[1..].iter().all(|other| schemes[0] < *other), "{schemes:?}");
}

/// Figure 6.6a: the limit of a combiner matters for HYBCOMB, but hardly for CC-SYNCH. Section
/// 6.2.2: calls through pointers slow messages down most, but not below shared memory.
#[test]
fn combiners_gain_from_more_operations_and_numbers() {
    let mops = |way| tile(way, TILES, 1).mops;
    within(mops(Way::HybComb(1000)) / mops(Way::HybComb(200)), 1.05, 1.5);
    within(mops(Way::CcSynch(5000)) / mops(Way::CcSynch(200)), 0.95, 1.05);
    let [mp, hybcomb, shm, cc] = schemes(MAX_OPS).map(|(_, way)| {
        Setting { by_pointer: true, ..machines::tile(way, TILES, 1) }.run().unwrap().mops
    });
    within(mops(Way::Mp) / mp, 1.1, 2.0);
    assert!(mp > hybcomb && hybcomb > shm && hybcomb > cc, "{mp}, {hybcomb}, {shm}, {cc}");
}

/// T9.
#[test]
fn messages_beat_shared_memory() {
    let [mp, hybcomb, shm, cc] = schemes(MAX_OPS).map(|(_, way)| tile(way, TILES, 1).mops);
    within(mp / shm, 2.5, 6.0);
    within(hybcomb / cc, 1.8, 4.2);
    within(tile(Way::HybComb(5000), TILES, 1).mops, 88.0 * 0.7, 88.0 * 1.3);
}

/// T10, and T14 for servicing threads.
#[test]
fn messages_spare_the_servicing_thread() {
    for (name, way) in schemes(u64::MAX) {
        let point = tile(way, TILES, 1);
        let [demanded, prefetched] = point.remote();
        if ["MP-SERVER", "HYBCOMB"].contains(&name) {
            assert!(point.stalled() < 0.2, "{name}: {}", point.stalled());
            assert!(demanded + prefetched < 0.01, "{name}: {demanded} and {prefetched}");
        } else {
            assert!(point.stalled() > 0.5, "{name}: {}", point.stalled());
            within(demanded + prefetched, 1.95, 2.2);
        }
    }
}

/// T11.
#[test]
fn hybcomb_rarely_exchanges_and_is_fair() {
    let alone = tile(Way::HybComb(MAX_OPS), 1, 1);
    // The measured time can begin and end in the middle of an operation.
    let operations = alone.operations() as f64;
    within(alone.exchanges() * operations, operations - 1.0, operations + 1.0);
    within(alone.atomics(), 2.99, 3.01);
    within(tile(Way::CcSynch(MAX_OPS), 1, 1).atomics(), 0.99, 1.01);
    for threads in [2, 3, 5, 8, 12, 18, 24, TILES] {
        let point = tile(Way::HybComb(MAX_OPS), threads, 1);
        assert!(point.exchanges() < if threads == TILES { 0.15 } else { 0.85 }, "{threads}");
        within(point.fairness(), 1.0, 1.25);
    }
    within(tile(Way::Mp, TILES, 1).fairness(), 1.0, 1.25);
}

/// T12, without LCRQ, because the reason why it is slower on the real machine is unknown. 2 and 1.5
/// within a factor of 1.5; "almost 2" within 20 %.
#[test]
fn one_server_serves_queues_and_stacks_fastest() {
    let queues = QUEUES.map(|(_, kind)| kind(TILES).unwrap().mops);
    let [mp, hybcomb, shm, cc, mp_two, hyblock_two, hyblock, _] = queues;
    within(mp / shm.max(cc), 2.0 / 1.5, 2.0 * 1.5);
    within(hybcomb / shm.max(cc), 1.0, 1.5 * 1.5);
    within(hyblock_two / hyblock, 2.0 * 0.8, 2.0);
    assert!(shm > mp_two && cc > hyblock_two, "{queues:?}");
    let stacks = STACKS.map(|(_, kind)| kind(TILES).unwrap().mops);
    within(stacks[0] / mp, 0.9, 1.1);
    within(stacks[1] / hybcomb, 0.8, 1.2);
    assert!(stacks[..5].iter().all(|&other| other > stacks[5]), "{stacks:?}");
}

/// Figure 6.6c: at first a combiner serves about all other threads, and then sharply more, up to
/// about the limit. In the paper CC-SYNCH reaches the limit; here it stays a quarter below.
#[test]
fn combining_rates_rise_to_the_limit() {
    let rates = |threads| {
        [Way::HybComb(MAX_OPS), Way::CcSynch(MAX_OPS)].map(|way| tile(way, threads, 1).combined)
    };
    for threads in [3, 5, 8] {
        let others = (threads - 1) as f64;
        // With eight threads the sharp rise has begun.
        let most = if threads < 8 { others } else { f64::INFINITY };
        within(rates(threads)[0], 0.75 * others, most);
    }
    let all = MAX_OPS as f64;
    rates(TILES).into_iter().for_each(|rate| within(rate, 0.7 * all, all));
}

/// T13 and T15: signs and order. Magnitudes are within a factor of 2, and for streaming stores on
/// the Opteron within 2.5.
#[test]
fn backoff_and_streaming_stores_gain() {
    for x86 in BOTH {
        let X86 { machine, clients, backoff, streaming_backoff, .. } = x86;
        let run = |slots, increments| {
            let setting = x86.setting(Way::Shm(slots), 1, clients).unwrap();
            Setting { increments, ..setting }.run().unwrap().mops
        };
        let (plain, backoff) = (x86.slots(), Some(backoff));
        let streams = Slots { streams: true, ..plain };
        let base = run(plain, 1);
        let with_backoff = run(Slots { backoff, ..plain }, 1);
        let shuffled = run(Slots { backoff, shuffled: true, ..plain }, 1);
        let streaming = run(streams, 1);
        let both = run(Slots { backoff: Some(streaming_backoff), ..streams }, 1);
        let lost = (with_backoff - shuffled) / (with_backoff - base);
        assert!(lost >= 0.7, "{machine}: {lost}");
        let long = run(streams, 200) / run(plain, 200);
        if machine == XEON {
            within(with_backoff / base, 3.0, 12.0);
            within(streaming / base, 1.75, 7.0);
            assert!(both / streaming > 1.2, "{both} and {streaming}");
            within(long, 1.05_f64.max(1.84 / 2.0), streaming / base);
        } else {
            within(with_backoff / base, 1.01, 4.0);
            within(streaming / base, 1.01, 1.7 * 2.5);
            within(both / streaming, 0.95, 1.05);
            within(long, 1.05, (1.19_f64 * 2.0).min(streaming / base));
        }
    }
}

/// Figure 7.9: an optimized server beats a bare addition and combining; H-SYNCH beats CC-SYNCH.
#[test]
fn optimized_server_beats_the_others() {
    for x86 in BOTH {
        let slots = Slots { backoff: Some(x86.backoff), ..x86.slots() };
        let [server, cc, h, add] =
            [Way::Shm(slots), Way::CcSynch(200), Way::HSynch(200), Way::FetchAdd]
                .map(|way| x86.setting(way, 1, x86.clients).unwrap().run().unwrap().mops);
        assert!(server > add && server > h && server > cc, "{server}, {add}, {h}, {cc}");
        assert!(x86.machine != XEON || h > 1.5 * cc, "{h} and {cc}");
    }
}

/// F3: a server finds a backoff with which it is as fast as with the best known one.
#[test]
fn server_finds_the_backoff_of_its_clients() {
    let x86 = BOTH[1];
    let run = |slots| {
        [1, x86.clients].map(|n| x86.setting(Way::Shm(slots), 1, n).unwrap().run().unwrap().mops)
    };
    let plain = x86.slots();
    let [alone, crowded] = run(Slots { tunes: true, ..plain });
    assert!(alone > 0.9 * run(plain)[0], "{alone}");
    assert!(crowded > 0.9 * run(Slots { backoff: Some(x86.backoff), ..plain })[1], "{crowded}");
}

/// Figure 7.7, as far as it holds: the server without optimizations answers a single client
/// fastest. With backoff, that client waits for a second poll, longer than in the thesis.
#[test]
fn optimizations_cost_latency_for_one_client() {
    for x86 in BOTH {
        let latency =
            |slots| x86.setting(Way::Shm(slots), 1, 1).unwrap().run().unwrap().latency_ns();
        let plain = x86.slots();
        let streaming = latency(Slots { streams: true, ..plain });
        let backoff = latency(Slots { backoff: Some(x86.backoff), ..plain });
        assert!(latency(plain) < streaming && streaming < backoff, "{streaming}, {backoff}");
    }
}

/// Sections 6.2.5 and 7.2.3: on x86 a queue gains from a second lock, and a server on one die is
/// slower than on the TILE-Gx. CC-SYNCH is about as fast as a server without optimizations.
#[test]
fn shared_memory_of_x86_is_slower_and_gains_from_two_locks() {
    for x86 in BOTH {
        let all = |way, parts| x86.setting(way, parts, x86.clients).unwrap();
        let (cc, base) = (Way::CcSynch(MAX_OPS), Way::Shm(x86.slots()));
        for way in [&cc, &base] {
            let [one, two] = [(1, Contained::Queue), (2, Contained::QueueOfTwo)]
                .map(|(parts, object)| all(way.clone(), parts).run_on(&object).unwrap().mops);
            within(two / one, 1.2, 2.1);
        }
        let die = x86.die(base.clone()).unwrap().run().unwrap().mops;
        assert!(die < tile(Way::Shm(TILE_SLOTS), TILES, 1).mops, "{die}");
        let [cc, base] = [cc, base].map(|way| all(way, 1).run().unwrap().mops);
        within(cc / base, 0.85, 1.15);
    }
}
