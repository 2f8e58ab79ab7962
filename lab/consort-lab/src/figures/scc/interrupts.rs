//! T4: one core interrupts many (section 3.3.4, figure 3.3).

use anyhow::Result;
use consort_sim::Simulation;

use super::{
    machine::{CORES, MACHINE, RAW, buffers, edited},
    row::Row,
};
use crate::simulation::interrupts_ns;
use consort_bench::page::Curves;

figures! { pub FIGURES of "T4", "section 3.3.4, figure 3.3a":
    // "from about 2000 to almost 6000", "about 3 times more expensive than" one alone; "barely
    // noticeable for less than 20 cores". The time of the fastest core is a parameter of the
    // machine. Times differ only because of the registers next to the mesh (figure 3.3b).
    "cycles":
    SLOWEST("3.3a 48 cores, slowest", MACHINE == 6000.0)
    "x":
    SLOWEST_OVER_ONE("3.3a 48 cores, slowest / one alone", MACHINE == 3.0)
    SPREAD_OF_16("3.3a 16 cores, slowest / fastest", MACHINE == 1.0)
}

/// The numbers of interrupted cores.
const COUNTS: [u32; 7] = [1, 8, 16, 20, 32, 40, CORES];

/// The first and the last of the interrupts, in cycles of a core.
struct Spread {
    first: f64,
    last: f64,
}

impl Spread {
    fn of(simulation: &Simulation, cores: u32, ghz: f64) -> Result<Self> {
        let times = interrupts_ns(simulation, cores)?.into_iter().map(|ns| ns * ghz);
        let all: Vec<f64> = times.collect();
        let first = all.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Self { first, last: all.into_iter().fold(0.0, f64::max) })
    }
}

/// Returns the rows of the figure, and the figure over the number of cores.
///
/// # Errors
/// When a simulation fails.
pub(super) fn rows() -> Result<(Vec<Row>, Curves)> {
    let ghz = buffers()?.ghz;
    // Figure 3.3b: only the sender uses the registers next to the mesh.
    let avoided = edited(RAW, |machine| machine.interrupt.status_read_cycles = 0.0)?;
    let simulations = [edited(RAW, |_| ())?, avoided];
    let mut ways: Vec<(String, Vec<f64>)> = Vec::new();
    for (simulation, what) in simulations.iter().zip(["", ", no status registers"]) {
        let spreads = COUNTS.map(|cores| Spread::of(simulation, cores, ghz));
        let spreads: Vec<Spread> = spreads.into_iter().collect::<Result<_>>()?;
        ways.push((format!("fastest{what}"), spreads.iter().map(|it| it.first).collect()));
        ways.push((format!("slowest{what}"), spreads.iter().map(|it| it.last).collect()));
    }
    let at = |way: usize, cores: u32| {
        let index = COUNTS.iter().position(|&other| other == cores);
        index.map_or(f64::NAN, |index| ways[way].1[index])
    };
    let rows = vec![
        Row::other("3.3a 48 cores, fastest", "cycles", at(0, CORES)),
        Row::of(&SLOWEST, at(1, CORES)),
        Row::of(&SLOWEST_OVER_ONE, at(1, CORES) / at(1, 1)),
        Row::of(&SPREAD_OF_16, at(1, 16) / at(0, 16)),
        Row::other("3.3b 48 cores, slowest / fastest", "x", at(3, CORES) / at(2, CORES)),
    ];
    let numbers = COUNTS.map(f64::from).to_vec();
    let by = "interrupted cores".to_owned();
    Ok((rows, Curves { values: "cycles".to_owned(), by, numbers, ways }))
}
