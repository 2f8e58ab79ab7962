//! Measures all rows in turn.
//!
//! In each round every row has one block, in random order. Between two blocks there is a reading of
//! the transfer between the cores of PEs 0 and 1. A block whose two readings differ by more than a
//! fifth is discarded. If PEs share cores, the transfer is not measured, and the times have no
//! class. If an OpenMP program fails or hangs, its rows are dropped.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, ensure};
use consort_fabric::statistics::Summary;
use consort_machine::topology::Topology;
use consort_tuner::TransferClass;

use super::{
    barriers::BARRIER,
    regions::{EMPTY, SUM},
    row::{LEN, OPENMP, Row, Setting, Work},
};
use crate::{
    harness::{Figure, Mode, hundredths},
    limits::{readings_agree, transfer_ns},
    peers::openmp::OpenMp,
    rng::Rng,
    units::in_a_line,
};

/// The time of a reading of the transfer.
const TRANSFER_SLICE: Duration = Duration::from_micros(500);
/// The additional time in which a disturbed machine may complete a block of each row.
const PATIENCE: Duration = Duration::from_secs(10);

/// The settings of a measurement of all rows.
#[derive(Debug)]
pub struct Race<'r> {
    /// The number of PEs, and of the threads of other libraries.
    pub pes: u32,
    /// The approximate measuring time.
    pub budget: Duration,
    /// The OpenMP program, or the reason why there is none.
    pub openmp: &'r Result<OpenMp>,
    /// Ends it with the current block once it is set.
    pub stop: &'r AtomicBool,
}

/// The times of all rows.
#[derive(Debug)]
pub struct Results {
    /// The number of PEs.
    pub pes: u32,
    /// The number of usable cores.
    pub usable_cores: usize,
    /// The processor of each PE, if each has one.
    pub cpus: Option<Vec<u32>>,
    /// The OpenMP compiler, or the reason why there is none.
    pub openmp: Result<String, String>,
    /// The times in each class of the transfer that occurred.
    pub classes: Vec<ClassResults>,
}

/// The times of all rows in one class.
#[derive(Debug)]
pub struct ClassResults {
    /// The class; `None` if PEs share cores, or there is only one.
    pub class: Option<TransferClass>,
    /// The one-way transfer of a cache line during the measurement.
    pub transfer_ns: Option<f64>,
    pub(super) times: Vec<Times>,
}

#[derive(Debug)]
pub(super) struct Times {
    pub(super) work: Work,
    pub(super) name: &'static str,
    pub(super) peer: Option<&'static str>,
    /// The time of a region or a barrier.
    pub(super) summary: Summary,
    /// The time relative to the first row of the same work, which is Consort's.
    pub(super) over_first: Option<f64>,
    /// The ratio to the transfer at that moment.
    pub(super) transfers: Option<f64>,
}

/// One block of a row.
#[derive(Clone, Copy, Debug)]
struct Sample {
    row: usize,
    ns: f64,
    transfer_ns: Option<f64>,
}

impl Sample {
    fn class(&self) -> Option<TransferClass> {
        self.transfer_ns.map(TransferClass::of)
    }
}

impl Race<'_> {
    /// Measures.
    ///
    /// # Errors
    /// If a library fails, or the machine changed during every block.
    pub fn run(&self) -> Result<Results> {
        let openmp = self.openmp.as_ref();
        let setting = Setting::new(self.pes, openmp.ok(), self.stop);
        let every = [EMPTY, SUM, BARRIER].into_iter().flatten();
        let rows: Vec<&Row> =
            every.filter(|row| row.peer != Some(OPENMP) || openmp.is_ok()).collect();
        let (samples, failure) = self.samples(&setting, &rows)?;
        ensure!(
            !samples.is_empty() || self.stop.load(Relaxed),
            "the machine changed during every block; try again when it is idle"
        );
        let cpus = setting.cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect());
        Ok(Results {
            pes: self.pes,
            usable_cores: Topology::discover().usable_cores(),
            cpus,
            openmp: match failure {
                Some(failure) => Err(in_a_line(&failure)),
                None => openmp.map(OpenMp::compilation).map_err(in_a_line),
            },
            classes: classes(&rows, &samples),
        })
    }

    /// Returns the blocks, and the reason why OpenMP has none if it has failed.
    fn samples(
        &self,
        setting: &Setting<'_>,
        rows: &[&Row],
    ) -> Result<(Vec<Sample>, Option<Error>)> {
        let (mut samples, mut failure): (Vec<Sample>, Option<Error>) = (Vec::new(), None);
        let is_openmp = |row: usize| rows[row].peer == Some(OPENMP);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let (mut rng, begun) = (Rng(u64::from(self.pes)), Instant::now());
        let mut before = transfer(setting);
        loop {
            rng.shuffle(&mut order);
            for &row in &order {
                if failure.is_some() && is_openmp(row) {
                    continue;
                }
                let ns = (rows[row].block_ns)(setting);
                // Relaxed: the flag publishes no other data. A C program may have been interrupted
                // too.
                if self.stop.load(Relaxed) {
                    return Ok((samples, failure));
                }
                let ns = match ns.with_context(|| format!("{} failed", rows[row].name)) {
                    Err(error) if is_openmp(row) => {
                        failure = Some(error);
                        samples.retain(|sample| !is_openmp(sample.row));
                        before = transfer(setting);
                        continue;
                    }
                    ns => ns?,
                };
                let after = transfer(setting);
                let both = before.zip(after);
                if both.is_none_or(|(before, after)| readings_agree(before, after)) {
                    let transfer_ns = both.map(|(before, after)| before.midpoint(after));
                    samples.push(Sample { row, ns, transfer_ns });
                }
                before = after;
            }
            let is_measured = |row| samples.iter().any(|sample| sample.row == row);
            let mut left = (0..rows.len()).filter(|&row| failure.is_none() || !is_openmp(row));
            let (spent, all) = (begun.elapsed(), left.all(is_measured));
            if spent >= self.budget && (all || spent >= self.budget + PATIENCE) {
                return Ok((samples, failure));
            }
        }
    }
}

impl Results {
    /// Returns a figure for each row and class, and one without times if there is no OpenMP.
    pub fn figures(&self) -> Vec<Figure> {
        let placement = if self.cpus.is_some() { "one PE a core" } else { "unpinned" };
        let blank = Figure {
            placement: placement.to_owned(),
            ..Figure::of("region", self.pes, Mode::Throughput)
        };
        let of_class = |one: &ClassResults| -> Vec<Figure> {
            let figure = |times: &Times| Figure {
                algorithm: Some(format!("{}, {}", times.work.name(), times.name)),
                bytes: (times.work == Work::Sum).then_some(LEN * size_of::<f64>()),
                peer: times.peer.map(str::to_owned),
                ratio_to_limit: times.transfers.map(hundredths),
                c2c_ns: one.transfer_ns.map(hundredths),
                c2c_class: one.class,
                ..blank.clone().with(&times.summary)
            };
            one.times.iter().map(figure).collect()
        };
        let mut figures: Vec<Figure> = self.classes.iter().flat_map(of_class).collect();
        if let Err(why) = &self.openmp {
            let (peer, absent) = (Some(OPENMP.to_owned()), Some(why.clone()));
            figures.push(Figure { peer, absent, ..blank });
        }
        figures
    }
}

/// Returns the transfer between the cores of PEs 0 and 1, if each PE has a core. A reading without
/// a reply agrees with no other.
fn transfer(setting: &Setting<'_>) -> Option<f64> {
    let [a, b, ..] = setting.cpus.as_deref()? else { return None };
    Some(transfer_ns(*a, *b, TRANSFER_SLICE).unwrap_or(f64::INFINITY))
}

/// Returns the times in each class that occurred.
fn classes(rows: &[&Row], samples: &[Sample]) -> Vec<ClassResults> {
    let of_class = |class| {
        let blocks: Vec<&Sample> = samples.iter().filter(|one| one.class() == class).collect();
        let over = |row: Option<usize>, of: &dyn Fn(&Sample) -> Option<f64>| {
            let counts = |one: &&&Sample| row.is_none_or(|row| one.row == row);
            let values: Vec<f64> = blocks.iter().filter(counts).filter_map(|one| of(one)).collect();
            (!values.is_empty()).then(|| Summary::of(&values))
        };
        let time = |row| over(Some(row), &|one| Some(one.ns));
        let times = rows.iter().enumerate().filter_map(|(index, row)| {
            let summary = time(index)?;
            let first = time(rows.iter().position(|other| other.work == row.work)?);
            let transfers = over(Some(index), &|one| Some(one.ns / one.transfer_ns?));
            Some(Times {
                work: row.work,
                name: row.name,
                peer: row.peer,
                summary,
                over_first: first.map(|first| summary.median / first.median),
                transfers: transfers.map(|transfers| transfers.median),
            })
        });
        let times: Vec<Times> = times.collect();
        let transfer_ns = over(None, &|one| one.transfer_ns).map(|transfer| transfer.median);
        (!times.is_empty()).then_some(ClassResults { class, transfer_ns, times })
    };
    [Some(TransferClass::Near), Some(TransferClass::Far), None]
        .into_iter()
        .filter_map(of_class)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_use_first_row_of_same_work_and_class() {
        let rows: Vec<&Row> = EMPTY.iter().chain(BARRIER).collect();
        let sample = |row, ns, transfer_ns| Sample { row, ns, transfer_ns: Some(transfer_ns) };
        let samples = [
            sample(0, 200.0, 20.0),
            sample(2, 800.0, 20.0),
            sample(5, 100.0, 20.0),
            sample(6, 50.0, 25.0),
            sample(2, 900.0, 200.0),
        ];
        let classes = classes(&rows, &samples);
        let [near, far] = &classes[..] else { panic!("{classes:?}") };
        let ratios = |one: &ClassResults| -> Vec<_> {
            one.times.iter().map(|times| (times.over_first, times.transfers)).collect()
        };
        assert_eq!(near.transfer_ns, Some(20.0));
        let expected = [(1.0, 10.0), (4.0, 40.0), (1.0, 5.0), (0.5, 2.0)];
        assert_eq!(ratios(near), expected.map(|(over, transfers)| (Some(over), Some(transfers))));
        assert_eq!(ratios(far), [(None, Some(4.5))], "no other row was far");
    }

    #[test]
    fn each_work_has_a_first_row_of_consort() {
        let works = [EMPTY, SUM, BARRIER].map(|rows| {
            assert!(rows[0].peer.is_none() && rows.iter().all(|row| row.work == rows[0].work));
            rows[0].work
        });
        assert_eq!(works, Work::EVERY);
    }
}
