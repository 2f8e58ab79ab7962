//! T4: the throughput when several sources broadcast at once (section 3.3.4, figure 3.4).

use anyhow::Result;
use consort_collectives::async_broadcast::Variant;

use super::{
    super::{experiment::Experiment, figure::Figure, quantity::Quantity},
    machine::{CORES, FITTED, LINE_BYTES, MACHINE, RAW, simulation},
    native::async_broadcast_ns,
    row::Row,
};
use crate::simulation::async_broadcasts::{self, Aggregate, Settings};
use consort_bench::{page::Curves, units::counted};

/// 68 % of a core's bandwidth when it copies from a message buffer to its memory, in 10^6 B/s.
pub(super) const SATURATED_MBPS: f64 = 0.68 * 55.0;

figures! { pub FIGURES of "T4", "section 3.3.4, figure 3.4": "MB/s":
    SATURATED("48 sources, k=47", MACHINE == SATURATED_MBPS)
    "x":
    // "with a single source, the throughput decreases as k increases"; with many "the trend is
    // opposite"; "with more than one source, the throughput increases"; the difference between
    // 5 and 48 sources "is not significant".
    ONE_K7_OVER_K2("3.4 1 source, k=7 / k=2", MACHINE <= 1.0)
    ONE_K47_OVER_K7("3.4 1 source, k=47 / k=7", MACHINE <= 1.0)
    ALL_K3_OVER_K2("3.4 48 sources, k=3 / k=2", MACHINE >= 1.0)
    ALL_K4_OVER_K3("3.4 48 sources, k=4 / k=3", MACHINE >= 1.0)
    ALL_K7_OVER_K2("3.4 48 sources, k=7 / k=2", MACHINE >= 1.0)
    ALL_K7_OVER_K4("3.4 48 sources, k=7 / k=4", MACHINE >= 1.0)
    ALL_K47_OVER_K7("3.4 48 sources, k=47 / k=7", MACHINE >= 1.0)
    FIVE_OVER_ONE["3.4 5 sources / 1, k=", ""; 2 | 7 | 47 => (MACHINE >= 1.0)]
    ALL_OVER_FIVE("3.4 48 sources / 5, k=47", MACHINE == 1.0)
}

/// How long sources broadcast continuously, in nanoseconds.
const ENDLESS_NS: f64 = 1e7;
/// Bytes in their messages.
const ENDLESS_BYTES: usize = 128 * LINE_BYTES;
/// The numbers of sources.
const SOURCES: [u32; 3] = [1, 5, CORES];

/// Returns the sources, evenly spread. The thesis does not say which cores they are.
fn spread(sources: u32) -> Vec<u32> {
    (0..sources).map(|index| index * CORES / sources).collect()
}

/// The first cores. They have children in each other's trees, and forward for all sources.
const NEIGHBOURS: [u32; 5] = [0, 1, 2, 3, 4];

/// Returns the settings of the broadcasts.
pub(super) fn settings(variant: Variant, k: u32) -> Settings {
    Settings { k, chunk_bytes: 96 * LINE_BYTES, variant }
}

/// Returns the name of a variant in rows.
pub(super) const fn name(variant: Variant) -> &'static str {
    match variant {
        Variant::Published => "",
        Variant::Fair => ", fair",
    }
}

/// The throughputs of a variant, by degree and number of sources.
pub(super) struct Sources {
    variant: Variant,
    degrees: &'static [u32],
    /// For each degree and number of sources: raw, and with the fitted parameters.
    reached: Vec<[(Aggregate, Aggregate); SOURCES.len()]>,
    /// For each degree, the same for neighbours as sources.
    of_neighbours: Vec<(Aggregate, Aggregate)>,
}

impl Sources {
    /// Simulates all degrees and numbers of sources.
    ///
    /// # Errors
    /// When a simulation fails.
    pub(super) fn run(variant: Variant, degrees: &'static [u32]) -> Result<Self> {
        let (mut reached, mut of_neighbours) = (Vec::new(), Vec::new());
        for &k in degrees {
            let at = |effects, sources: &[u32]| {
                let (simulation, settings) = (simulation(effects)?, settings(variant, k));
                let bytes = ENDLESS_BYTES;
                async_broadcasts::aggregate(&simulation, settings, sources, bytes, ENDLESS_NS)
            };
            let both =
                |sources: &[u32]| -> Result<_> { Ok((at(RAW, sources)?, at(FITTED, sources)?)) };
            let [one, five, all] = SOURCES.map(spread);
            reached.push([both(&one)?, both(&five)?, both(&all)?]);
            of_neighbours.push(both(&NEIGHBOURS)?);
        }
        Ok(Self { variant, degrees, reached, of_neighbours })
    }

    /// Returns the throughput, raw and with the fitted parameters.
    fn of(&self, sources: u32, k: u32) -> (Aggregate, Aggregate) {
        let degree = self.degrees.iter().position(|&other| other == k);
        let index = SOURCES.iter().position(|&other| other == sources);
        let found = degree.zip(index).map(|(degree, index)| self.reached[degree][index]);
        found.unwrap_or_else(|| panic!("{sources} sources with k={k} were not simulated"))
    }

    /// Returns the throughput with the fitted parameters.
    pub(super) fn fitted(&self, sources: u32, k: u32) -> Aggregate {
        self.of(sources, k).1
    }

    /// Returns the rows of the throughputs with some degrees.
    ///
    /// # Errors
    /// When a job on this machine fails.
    pub(super) fn rows(&self, experiment: &Experiment<'_>, degrees: &[u32]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for &k in degrees {
            for sources in SOURCES {
                let (raw, fitted) = self.of(sources, k);
                let quantity = if (sources, k) == (CORES, 47) {
                    SATURATED.on(MACHINE)
                } else {
                    let what = format!("{}, k={k}", counted(sources, "source"));
                    Quantity::new(MACHINE, what, SATURATED.unit)
                };
                let row = Row::new(quantity.named(name(self.variant)), raw.mbps);
                let mut row = row.fitted(fitted.mbps);
                if k == 47 {
                    // A PE receives only the messages of the other sources.
                    let pes = f64::from(experiment.cores.max(2));
                    let message_ns =
                        async_broadcast_ns(experiment, self.variant, sources, ENDLESS_BYTES)?;
                    let mbps = ENDLESS_BYTES as f64 * 1e3 / message_ns;
                    row.native(Some(mbps * (pes - 1.0) / pes));
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Returns a row with the ratio of two throughputs. Each is given by the number of sources and
    /// k.
    fn ratio(&self, figure: &'static Figure, over: (u32, u32), under: (u32, u32)) -> Row {
        let [(over_raw, over_fitted), (under_raw, under_fitted)] =
            [over, under].map(|(sources, k)| self.of(sources, k));
        let quantity = figure.on(MACHINE).named(name(self.variant));
        let row = Row::new(quantity, over_raw.mbps / under_raw.mbps);
        row.fitted(over_fitted.mbps / under_fitted.mbps)
    }

    /// Returns the trends of the figure as rows. With one source the throughput falls with k, with
    /// many it rises. More sources increase it at first, then no longer.
    pub(super) fn trends(&self) -> Vec<Row> {
        let by_k = |figure, sources, high, low| self.ratio(figure, (sources, high), (sources, low));
        let mut rows = vec![by_k(&ONE_K7_OVER_K2, 1, 7, 2), by_k(&ONE_K47_OVER_K7, 1, 47, 7)];
        match self.variant {
            Variant::Published => rows.push(by_k(&ALL_K7_OVER_K2, CORES, 7, 2)),
            Variant::Fair => rows.extend([
                by_k(&ALL_K3_OVER_K2, CORES, 3, 2),
                by_k(&ALL_K4_OVER_K3, CORES, 4, 3),
                by_k(&ALL_K7_OVER_K4, CORES, 7, 4),
            ]),
        }
        rows.push(by_k(&ALL_K47_OVER_K7, CORES, 47, 7));
        let more = |figure: &'static Figure| self.ratio(figure, (5, figure.at), (1, figure.at));
        rows.extend(FIVE_OVER_ONE.iter().map(more));
        rows.push(self.ratio(&ALL_OVER_FIVE, (CORES, 47), (5, 47)));
        for (&k, (raw, fitted)) in self.degrees.iter().zip(&self.of_neighbours) {
            let (one_raw, one_fitted) = self.of(1, k);
            let what = format!("3.4 5 neighbours as sources / 1, k={k}{}", name(self.variant));
            let row = Row::other(what, "x", raw.mbps / one_raw.mbps);
            rows.push(row.fitted(fitted.mbps / one_fitted.mbps));
        }
        rows
    }

    /// Returns the figure, simulated.
    pub(super) fn curves(&self) -> Curves {
        let way = |(index, sources): (usize, u32)| {
            let mbps = self.reached.iter().map(|of_degree| of_degree[index].0.mbps);
            (counted(sources, "source"), mbps.collect())
        };
        Curves {
            values: format!("MB/s{}", name(self.variant)),
            by: "k".to_owned(),
            numbers: self.degrees.iter().copied().map(f64::from).collect(),
            ways: SOURCES.into_iter().enumerate().map(way).collect(),
        }
    }
}
