//! T9: delegation and combining.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::{Curves, least, most},
    machines::{TILE, TILES, on_tile, tile},
    queue_locks::LOCKS,
    report::Report,
    run::{Point, Setting, Slots, Way},
};

/// The operations of others that a combiner executes at most (section 6.2.2).
pub(super) const MAX_OPS: u64 = 200;

const SCHEMES: [&str; 4] = ["MP-SERVER", "HYBCOMB", "SHM-SERVER", "CC-SYNCH"];

/// The longest sections of figure 6.5c.
const LONGEST: u32 = 15;

pub(super) fn schemes(most: u64) -> [(&'static str, Way); 4] {
    let [mp, hybcomb, shm, cc] = SCHEMES;
    [
        (mp, Way::Mp),
        (hybcomb, Way::HybComb(most)),
        (shm, Way::Shm(Slots::default())),
        (cc, Way::CcSynch(most)),
    ]
}

/// T9: delegation on the TILE-Gx (section 6.2.3, figures 6.5, 6.6a and 6.7).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let [servers, combiners] = counter(&mut report)?;
    long_sections(&mut report)?;
    let highest = max_ops(&mut report)?;
    beside_locks(&mut report)?;
    pointers(&mut report)?;
    report.finish(format!(
        "MP-SERVER {servers:.1} times SHM-SERVER (paper: 4.3), HYBCOMB {combiners:.1} times \
         CC-SYNCH (2.5) and {highest:.0} Mops/s with MAX_OPS 5000 (88)"
    ))
}

/// Figures 6.5a and b. Returns how many times as fast messages are with a server, and by combining.
fn counter(report: &mut Report) -> Result<[f64; 2]> {
    let threads = [2, 3, 4, 5, 10, 14, 17, 24, 30, TILES];
    let curves =
        Curves::run(schemes(MAX_OPS), &threads, |way, threads| on_tile(way.clone(), threads, 1))?;
    report.curves(("Mops/s", "threads"), &curves, |point| point.mops);
    report.curves(("ns", "threads"), &curves, Point::latency_ns);
    let [mp, hybcomb, shm, cc] = SCHEMES;
    let at_all = |name, other| curves.gains(name, &[other], TILES..)[0];
    let servers = report.add(TILE, "6.5a MP-SERVER / SHM-SERVER", "x", at_all(mp, shm));
    let combiners = report.add(TILE, "6.5a HYBCOMB / CC-SYNCH", "x", at_all(hybcomb, cc));
    report.add(TILE, "6.5a CC-SYNCH / SHM-SERVER", "x", at_all(cc, shm));
    let first = least(curves.gains(mp, &SCHEMES[1..], ..));
    report.add(TILE, "6.5a MP-SERVER / next best, least", "x", first);
    let combining = least(curves.gains(hybcomb, &[cc], ..));
    report.add(TILE, "6.5a HYBCOMB / CC-SYNCH, least", "x", combining);
    let first = most(curves.delays(mp, &SCHEMES[1..], ..));
    report.add(TILE, "6.5b MP-SERVER / next best, most", "x", first);
    let combining = most(curves.delays(hybcomb, &[cc], ..));
    report.add(TILE, "6.5b HYBCOMB / CC-SYNCH, most", "x", combining);
    for (name, dips) in [(cc, 17), (hybcomb, 24)] {
        let ratio = curves.at(name, dips).latency_ns() / curves.at(name, 14).latency_ns();
        report.add(TILE, format!("6.5b {name}, {dips} threads / 14"), "x", ratio);
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
    report.add(TILE, "6.5c 15, MP-SERVER / SHM-SERVER", "x", longest("SHM-SERVER"));
    report.add(TILE, "6.5c 15, MP-SERVER / slowest", "x", most(SCHEMES.map(longest).into()));
    Ok(())
}

/// Figure 6.6a. Returns the most operations of HYBCOMB, in millions a second.
fn max_ops(report: &mut Report) -> Result<f64> {
    let ways = [("HYBCOMB", Way::HybComb as fn(u64) -> Way), ("CC-SYNCH", Way::CcSynch)];
    let numbers = [10, 50, 100, 200, 500, 1000, 5000];
    let curves = Curves::run(ways, &numbers, |way, most| on_tile(way(most.into()), TILES, 1))?;
    report.curves(("Mops/s", "MAX_OPS"), &curves, |point| point.mops);
    let hybcomb = |most| curves.at("HYBCOMB", most).mops;
    let cc = |most| curves.at("CC-SYNCH", most).mops;
    report.add(TILE, "6.6a HYBCOMB, MAX_OPS 1000 / 200", "x", hybcomb(1000) / hybcomb(200));
    report.add(TILE, "6.6a CC-SYNCH, MAX_OPS 5000 / 200", "x", cc(5000) / cc(200));
    let highest = report.add(TILE, "6.6a HYBCOMB, MAX_OPS 5000", "Mops/s", hybcomb(5000));
    let server = on_tile(Way::Mp, TILES, 1)?.mops;
    report.add(TILE, "6.6a HYBCOMB, MAX_OPS 5000 / MP-SERVER", "x", highest / server);
    Ok(highest)
}

/// Figure 6.7: few threads that apply operations, beside which servers have one of their own.
fn beside_locks(report: &mut Report) -> Result<()> {
    let ways = LOCKS.into_iter().chain(schemes(MAX_OPS));
    let curves = Curves::run(ways, &[1, 2, 3, 4, 5], |way, clients| {
        let servers = u32::from(way.is_served());
        on_tile(way.clone(), clients + servers, 1)
    })?;
    report.curves(("ns", "application threads"), &curves, Point::latency_ns);
    let locks = LOCKS.map(|(name, _)| name);
    let alone = |name, others: &[&str]| curves.delays(name, others, 1..=1)[0];
    let others = [&locks[..], &SCHEMES[1..]].concat();
    report.add(TILE, "6.7 MP-SERVER / next best, 1 thread", "x", alone("MP-SERVER", &others));
    report.add(TILE, "6.7 MP-SERVER / TAS, 1 thread", "x", alone("MP-SERVER", &["TAS"]));
    report.add(TILE, "6.7 HYBCOMB / CC-SYNCH, 1 thread", "x", alone("HYBCOMB", &["CC-SYNCH"]));
    let of_five = |name| curves.delays(name, &locks, 5..)[0];
    let slowest = most(SCHEMES.map(of_five).into());
    report.add(TILE, "6.7 slowest scheme / best lock, 5 threads", "x", slowest);
    Ok(())
}

/// Section 6.2.2: sections that are called by a pointer, not chosen by a number.
fn pointers(report: &mut Report) -> Result<()> {
    let curves = Curves::run(schemes(MAX_OPS), &[0, 1], |way, by_pointer| {
        Setting { by_pointer: by_pointer == 1, ..tile(way.clone(), TILES, 1) }.run()
    })?;
    let mut gaining = 0.0;
    for name in SCHEMES {
        let gain = curves.at(name, 0).mops / curves.at(name, 1).mops;
        gaining += f64::from(gain > 1.0);
        report.add(TILE, format!("6.2.2 {name}, number / pointer"), "x", gain);
    }
    report.add(TILE, "6.2.2 schemes that gain by numbers", "", gaining);
    let first = curves.gains("MP-SERVER", &SCHEMES[1..], 1..);
    let combining = curves.gains("HYBCOMB", &SCHEMES[2..], 1..);
    let order = least([first, combining].concat());
    report.add(TILE, "6.2.2 by pointer, by messages / next", "x", order);
    Ok(())
}
