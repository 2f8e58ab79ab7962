//! T7: many cores access one message buffer, or one link of the mesh.

use anyhow::{Context, Result};
use consort::Rank;
use consort_sim::{Simulation, machines};

use super::{
    super::experiment::{Experiment, Outcome},
    machine::{
        CORES, LINE_BYTES, MACHINE, RAW, UNCONTENDED, WITH_LINKS, buffers, edited, simulation,
    },
    row::{Row, outcome},
};
use crate::simulation::{Load, Transfer, contention, loaded};

figures! { pub FIGURES of "T7", "section 4.1.3, figure 4.3": "x":
    GETS("gets of 128 lines, 24 cores, mean / one's", MACHINE == 1.0)
    GETS_SPREAD("gets of 128 lines, 48 cores, slowest / least", MACHINE >= 2.0)
    PUTS("puts of 1 line, 24 cores, mean / one's", MACHINE == 1.0)
    PUTS_SPREAD("puts of 1 line, 48 cores, slowest / least", MACHINE >= 4.0)
    // "more than two times slower", "more than four"; a link "did not show any performance drop".
    LOADED_LINK("mesh, get over the loaded link / alone", MACHINE == 1.0)
}

/// How long the cores access the buffer, in nanoseconds.
const PRESSURE_NS: f64 = 1e6;

/// T7: many cores access one message buffer, and one link (section 4.1.3, figure 4.3).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let (mut rows, mut verdict) = (Vec::new(), Vec::new());
    for (transfer, name, lines, mean_over_one, slowest_over_least) in [
        (Transfer::Get, "gets of 128 lines", 128, &GETS, &GETS_SPREAD),
        (Transfer::Put, "puts of 1 line", 1, &PUTS, &PUTS_SPREAD),
    ] {
        let press = |effects, cores| {
            contention(&simulation(effects)?, transfer, cores, lines * LINE_BYTES, PRESSURE_NS)
        };
        let slowdown = press(RAW, 24)?.mean_ns / press(UNCONTENDED, 24)?.mean_ns;
        rows.push(Row::of(mean_over_one, slowdown));
        let all = press(RAW, CORES)?;
        let spread = all.slowest_ns / all.fastest_ns;
        rows.push(Row::of(slowest_over_least, spread));
        verdict.push(format!("{name}: {slowdown:.2} times at 24 cores, slowest {spread:.1} at 48"));
    }
    let link = link()?;
    rows.push(Row::of(&LOADED_LINK, link.slowdown));
    rows.push(Row::other("mesh, time that the link is occupied", "%", link.occupied * 100.0));
    let what = "mesh, the same over links of a fifth of the rate";
    rows.push(Row::other(what, "x", link.of_slow_links));
    verdict.push(format!(
        "a link that is occupied for {:.0} % of the time makes a get {:.2} times as long (with a \
         fifth of the rate, {:.1})",
        link.occupied * 100.0,
        link.slowdown,
        link.of_slow_links
    ));
    outcome(&rows, verdict.join("; "))
}

/// The stress test of a link of the mesh.
struct Stress {
    slowdown: f64,
    occupied: f64,
    of_slow_links: f64,
}

/// Runs the stress test. All cores except those of tiles (2, 2) and (3, 2) get from a core in the
/// third row of the mesh, on the opposite side. One core of tile (2, 2) gets from tile (3, 2).
fn link() -> Result<Stress> {
    const LINES: usize = 128;
    let core = |column: u32, row: u32| Rank(2 * (6 * row + column));
    let is_between = |rank: Rank| [core(2, 2), core(3, 2)].contains(&Rank(rank.0 & !1));
    let opposite = |rank: Rank| Rank(2 * (6 * 2 + 5 - rank.0 / 2 % 6) + rank.0 % 2);
    let timed = (core(2, 2), core(3, 2));
    let alone = Load { timed, from: &|_| None };
    let stress = Load { timed, from: &|rank| Some(opposite(rank)).filter(|_| !is_between(rank)) };
    let get =
        |simulation: &Simulation, load| loaded(simulation, load, LINES * LINE_BYTES, PRESSURE_NS);
    let link = buffers()?.link.context("the description has no links")?;
    let slower = |times: f64| {
        edited(WITH_LINKS, |machine| {
            machine.link = Some(machines::Link { flit_ns: times * link.flit_ns, ..link })
        })
    };
    let slowdown = |simulation: &Simulation| -> Result<f64> {
        Ok(get(simulation, stress)?.mean_ns / get(simulation, alone)?.mean_ns)
    };
    let published = slower(1.0)?;
    // Half of the others, and the timed core, get over the link in its direction.
    let gets = get(&published, stress)?.others / 2.0;
    let line_ns = f64::from(link.line_flits) * link.flit_ns;
    Ok(Stress {
        slowdown: slowdown(&published)?,
        occupied: gets * LINES as f64 * line_ns / PRESSURE_NS,
        of_slow_links: slowdown(&slower(5.0)?)?,
    })
}
