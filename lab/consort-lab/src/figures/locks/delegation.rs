//! T9: delegation and combining.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::{Curves, least, most},
    machines::{TILE, TILE_SLOTS, TILES, on_tile, tile},
    queue_locks::LOCKS,
    report::Report,
    run::{Point, Setting, Way},
};

figures! { pub FIGURES of "T9", "sections 6.2.2 and 6.2.3":
    // With 36 threads unless stated otherwise. CC-SYNCH and SHM-SERVER: "very similar"; 15
    // increments: "about 10%"; MAX_OPS: "nearly as high".
    "x":
    SERVERS("6.5a MP-SERVER / SHM-SERVER", TILE == 4.3)
    COMBINERS("6.5a HYBCOMB / CC-SYNCH", TILE == 2.5)
    SHARED("6.5a CC-SYNCH / SHM-SERVER", TILE == 1.0)
    LEAST_SERVER("6.5a MP-SERVER / next best, least", TILE >= 1.0)
    LEAST_COMBINER("6.5a HYBCOMB / CC-SYNCH, least", TILE >= 1.0)
    MOST_SERVER("6.5b MP-SERVER / next best, most", TILE <= 1.0)
    MOST_COMBINER("6.5b HYBCOMB / CC-SYNCH, most", TILE <= 1.0)
    CC_SYNCH_DIP("6.5b CC-SYNCH, 17 threads / 14", TILE <= 1.0)
    HYBCOMB_DIP("6.5b HYBCOMB, 24 threads / 14", TILE <= 1.0)
    // "the difference between the best (MP-SERVER) and the worst (SHM-SERVER)".
    LONG("6.5c 15, MP-SERVER / ", TILE == 1.1)
    HYBCOMB_GAIN("6.6a HYBCOMB, MAX_OPS 1000 / 200", TILE >= 1.0)
    CC_SYNCH_GAIN("6.6a CC-SYNCH, MAX_OPS 5000 / 200", TILE == 1.0)
    HYBCOMB_OVER_SERVER("6.6a HYBCOMB, MAX_OPS 5000 / MP-SERVER", TILE == 1.0)
    // "by far the best performer", even better than TAS.
    ALONE_SERVER("6.7 MP-SERVER / next best, 1 thread", TILE <= 1.0)
    ALONE_COMBINER("6.7 HYBCOMB / CC-SYNCH, 1 thread", TILE >= 1.0)
    FIVE_THREADS("6.7 slowest scheme / best lock, 5 threads", TILE <= 1.0)
    BY_POINTER("6.2.2 by pointer, by messages / next", TILE >= 1.0)
    "Mops/s":
    HYBCOMB_5000("6.6a HYBCOMB, MAX_OPS 5000", TILE == 88.0)
    "":
    GAINING("6.2.2 schemes that gain by numbers", TILE >= 3.0)
}

/// The largest number of other threads' operations that a combiner executes (section 6.2.2).
pub(super) const MAX_OPS: u64 = 200;

const SCHEMES: [&str; 4] = ["MP-SERVER", "HYBCOMB", "SHM-SERVER", "CC-SYNCH"];

/// The longest sections of figure 6.5c.
const LONGEST: u32 = 15;

pub(super) fn schemes(most: u64) -> [(&'static str, Way); 4] {
    let [mp, hybcomb, shm, cc] = SCHEMES;
    [
        (mp, Way::Mp),
        (hybcomb, Way::HybComb(most)),
        (shm, Way::Shm(TILE_SLOTS)),
        (cc, Way::CcSynch(most)),
    ]
}

/// T9: delegation on the TILE-Gx (section 6.2.3, figures 6.5, 6.6a and 6.7).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let [servers, combiners] = counter(&mut report)?;
    long_sections(&mut report)?;
    let highest = max_ops(&mut report)?;
    few_threads(&mut report)?;
    pointers(&mut report)?;
    Ok(report.finish(format!(
        "MP-SERVER {servers:.1} times SHM-SERVER (paper: 4.3), HYBCOMB {combiners:.1} times \
         CC-SYNCH (2.5) and {highest:.0} Mops/s with MAX_OPS 5000 (88)"
    )))
}

/// Figures 6.5a and b. Returns the gain of messages with a server, and with combining.
fn counter(report: &mut Report) -> Result<[f64; 2]> {
    let threads = [2, 3, 4, 5, 10, 14, 17, 24, 30, TILES];
    let curves =
        Curves::run(schemes(MAX_OPS), &threads, |way, threads| on_tile(way.clone(), threads, 1))?;
    report.curves(("Mops/s", "threads"), &curves, |point| point.mops);
    report.curves(("ns", "threads"), &curves, Point::latency_ns);
    let [mp, hybcomb, shm, cc] = SCHEMES;
    let at_all = |name, other| curves.gains(name, &[other], TILES..)[0];
    let servers = report.add(SERVERS.on(TILE), at_all(mp, shm));
    let combiners = report.add(COMBINERS.on(TILE), at_all(hybcomb, cc));
    report.add(SHARED.on(TILE), at_all(cc, shm));
    let first = least(curves.gains(mp, &SCHEMES[1..], ..));
    report.add(LEAST_SERVER.on(TILE), first);
    let combining = least(curves.gains(hybcomb, &[cc], ..));
    report.add(LEAST_COMBINER.on(TILE), combining);
    let first = most(curves.delays(mp, &SCHEMES[1..], ..));
    report.add(MOST_SERVER.on(TILE), first);
    let combining = most(curves.delays(hybcomb, &[cc], ..));
    report.add(MOST_COMBINER.on(TILE), combining);
    for (figure, name, dips) in [(&CC_SYNCH_DIP, cc, 17), (&HYBCOMB_DIP, hybcomb, 24)] {
        let ratio = curves.at(name, dips).latency_ns() / curves.at(name, 14).latency_ns();
        report.add(figure.on(TILE), ratio);
    }
    Ok([servers, combiners])
}

/// Figure 6.5c.
fn long_sections(report: &mut Report) -> Result<()> {
    let increments = [0, 1, 2, 5, 10, LONGEST];
    let curves = Curves::run(schemes(MAX_OPS), &increments, |way, increments| {
        on_tile(way.clone(), TILES, increments as usize)
    })?;
    report.curves(("Mops/s", "increments"), &curves, |point| point.mops);
    let longest = |other| curves.gains("MP-SERVER", &[other], LONGEST..)[0];
    report.add(LONG.on(TILE).named("SHM-SERVER"), longest("SHM-SERVER"));
    report.add(LONG.on(TILE).named("slowest"), most(SCHEMES.map(longest).into()));
    Ok(())
}

/// Figure 6.6a. Returns the largest rate of HYBCOMB, in millions of operations per second.
fn max_ops(report: &mut Report) -> Result<f64> {
    let ways = [("HYBCOMB", Way::HybComb as fn(u64) -> Way), ("CC-SYNCH", Way::CcSynch)];
    let numbers = [10, 50, 100, 200, 500, 1000, 5000];
    let curves = Curves::run(ways, &numbers, |way, most| on_tile(way(most.into()), TILES, 1))?;
    report.curves(("Mops/s", "MAX_OPS"), &curves, |point| point.mops);
    let hybcomb = |most| curves.at("HYBCOMB", most).mops;
    let cc = |most| curves.at("CC-SYNCH", most).mops;
    report.add(HYBCOMB_GAIN.on(TILE), hybcomb(1000) / hybcomb(200));
    report.add(CC_SYNCH_GAIN.on(TILE), cc(5000) / cc(200));
    let highest = report.add(HYBCOMB_5000.on(TILE), hybcomb(5000));
    let server = on_tile(Way::Mp, TILES, 1)?.mops;
    report.add(HYBCOMB_OVER_SERVER.on(TILE), highest / server);
    Ok(highest)
}

/// Figure 6.7: few threads that apply operations. Servers have an additional thread.
fn few_threads(report: &mut Report) -> Result<()> {
    let ways = LOCKS.into_iter().chain(schemes(MAX_OPS));
    let curves = Curves::run(ways, &[1, 2, 3, 4, 5], |way, clients| {
        let servers = u32::from(way.is_served());
        on_tile(way.clone(), clients + servers, 1)
    })?;
    report.curves(("ns", "application threads"), &curves, Point::latency_ns);
    let locks = LOCKS.map(|(name, _)| name);
    let alone = |name, others: &[&str]| curves.delays(name, others, 1..=1)[0];
    let others = [&locks[..], &SCHEMES[1..]].concat();
    report.add(ALONE_SERVER.on(TILE), alone("MP-SERVER", &others));
    report.add(ALONE_COMBINER.on(TILE), alone("HYBCOMB", &["CC-SYNCH"]));
    let of_five = |name| curves.delays(name, &locks, 5..)[0];
    let slowest = most(SCHEMES.map(of_five).into());
    report.add(FIVE_THREADS.on(TILE), slowest);
    Ok(())
}

/// Section 6.2.2: sections that are called through a pointer, not selected by a number.
fn pointers(report: &mut Report) -> Result<()> {
    let curves = Curves::run(schemes(MAX_OPS), &[0, 1], |way, by_pointer| {
        Setting { by_pointer: by_pointer == 1, ..tile(way.clone(), TILES, 1) }.run()
    })?;
    let mut gaining = 0.0;
    for name in SCHEMES {
        let gain = curves.at(name, 0).mops / curves.at(name, 1).mops;
        gaining += f64::from(gain > 1.0);
        report.add_other(TILE, format!("6.2.2 {name}, number / pointer"), "x", gain);
    }
    report.add(GAINING.on(TILE), gaining);
    let first = curves.gains("MP-SERVER", &SCHEMES[1..], 1..);
    let combining = curves.gains("HYBCOMB", &SCHEMES[2..], 1..);
    let order = least([first, combining].concat());
    report.add(BY_POINTER.on(TILE), order);
    Ok(())
}
