//! The figures of a run of sessions: one for each kind of work and class of the transfer.

use consort::{Waiting, launch::Fabric, tune::Arrival};
use consort_fabric::statistics::{Summary, launches};
use consort_machine::topology::Topology;
use consort_tuner::TransferClass;

use super::{
    communication::Communication,
    figure::{Figure, hundredths},
    rounds::{RoundsOutcome, of_class},
    session::{Conditions, Mode, Session, Timing, by_launch},
    work::{ServedBy, Work},
};
use crate::{
    limits::{Limit, Limits},
    peers::threads::names,
};

/// The settings that all figures of a run share.
#[derive(Debug)]
pub struct RunSettings {
    /// The fabric of the PEs.
    pub fabric: Fabric,
    /// The timed communication.
    pub what: Communication,
    /// The number of PEs.
    pub pes: u32,
    /// Single calls, or calls in a row.
    pub mode: Mode,
    /// The conditions of the calls.
    pub conditions: Conditions,
    /// Whether the buffers lie in symmetric memory.
    pub symmetric: bool,
    /// How the PEs waited.
    pub waiting: Waiting,
    /// The number of usable cores.
    pub usable_cores: usize,
    /// The processor of each PE, if each has one. The launcher of an MPI places PEs itself.
    pub cpus: Option<Vec<u32>>,
}

impl RunSettings {
    /// Creates a run of this session on this machine.
    pub fn new(
        what: Communication,
        session: &Session,
        conditions: Conditions,
        symmetric: bool,
        waiting: Waiting,
    ) -> RunSettings {
        let topology = Topology::discover();
        let is_here = session.fabric.shape().is_none();
        let cpus = topology.placement(session.pes as usize).filter(|_| is_here);
        RunSettings {
            fabric: session.fabric,
            what,
            pes: session.pes,
            mode: session.mode,
            conditions,
            symmetric,
            waiting,
            usable_cores: topology.usable_cores(),
            cpus: cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect()),
        }
    }

    /// Returns whether PEs rewrite their contributions before each call.
    pub fn rewrites(&self) -> bool {
        self.mode == Mode::Latency && self.conditions.rewrite
    }

    /// Returns the limits that the bandwidth is compared with.
    pub fn share_limits(&self) -> &'static [Limit] {
        self.what.share_limits(self.rewrites())
    }

    /// Returns a figure without times.
    pub fn blank(&self) -> Figure {
        let placement = self.cpus.as_ref().map_or("unpinned".to_owned(), |cpus| {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("pinned:{}", cpus.join(","))
        });
        Figure {
            fabric: self.fabric.to_string().into(),
            arrival: self.conditions.arrival.name(),
            placement,
            ..Figure::of(self.what.name(), self.pes, self.mode)
        }
    }

    /// Returns the figures of one work: one for each class with blocks of it, or one without times.
    pub fn figures(&self, work: &Work, timing: &Timing, limits: &Limits) -> Vec<Figure> {
        let bytes = Some(work.bytes()).filter(|&bytes| bytes > 0);
        let blank = Figure { bytes, ..self.blank() };
        let waiting = Some(self.waiting.to_string());
        let blank = match work {
            Work::Call(query, ServedBy::Consort(candidate)) => {
                let served = timing.algorithm.as_ref().or(candidate.as_ref());
                Figure {
                    algorithm: served.map(|served| served.named()),
                    params: served.map(|served| served.parameters().iter().cloned().collect()),
                    sync: Some(query.sync.to_string()),
                    waiting,
                    chosen: candidate.is_none(),
                    ..blank
                }
            }
            Work::Call(_, ServedBy::Peer(index)) => Figure {
                fabric: "threads".into(),
                // A barrier before and a barrier after: all PEs enter and leave together.
                sync: Some("strict".to_owned()),
                peer: names().get(*index).map(|&name| name.to_owned()),
                ..blank
            },
            Work::PointToPoint(pattern, _) => Figure {
                algorithm: Some(pattern.operations().to_owned()),
                params: pattern.parameters(),
                waiting,
                ..blank
            },
        };
        self.figures_of(&blank, timing, limits)
    }

    /// Returns the figures of `blank` with these times: one for each class with blocks, or one
    /// without times.
    pub fn figures_of(&self, blank: &Figure, timing: &Timing, limits: &Limits) -> Vec<Figure> {
        let blank = &Figure { discarded: timing.discarded, ..blank.clone() };
        let classes = [Some(TransferClass::Near), Some(TransferClass::Far), None];
        let figures: Vec<Figure> = classes
            .into_iter()
            .filter_map(|class| self.of_class(blank, timing, limits, class))
            .collect();
        if figures.is_empty() {
            let error = timing.error.clone();
            let why = error.unwrap_or_else(|| match timing.discarded {
                0 => "interrupted before it was timed".to_owned(),
                _ => "the machine changed during every block".to_owned(),
            });
            return vec![Figure { absent: Some(why), ..blank.clone() }];
        }
        figures
    }

    fn of_class(
        &self,
        blank: &Figure,
        timing: &Timing,
        limits: &Limits,
        class: Option<TransferClass>,
    ) -> Option<Figure> {
        let blocks = of_class(timing, class);
        let median = |values: Vec<f64>| (!values.is_empty()).then(|| Summary::of(&values).median);
        let launches = by_launch(&blocks, |block| block.ns);
        let summary = launches::summary(&launches)?;
        // A C program times calls in a row, whatever the mode.
        let p99_ns = if self.mode == Mode::Throughput || blank.is_program {
            summary.p99
        } else {
            median(blocks.iter().map(|block| block.p99_ns).collect())?
        };
        let bytes = blank.bytes.unwrap_or(0);
        // The buffers of a C program are not rewritten.
        let has_shares = !(blank.is_program && self.rewrites());
        let transfers = blocks.iter().filter_map(|block| block.transfer_ns).collect();
        let ratios =
            blocks.iter().filter_map(|block| Some(block.ns / block.transfer_ns?)).collect();
        let gbps = |limit| limits.summary(limit, bytes, class).map(|limit| limit.median);
        Some(Figure {
            p99_ns: Some(hundredths(p99_ns)),
            ratio_to_limit: median(ratios).map(hundredths),
            c2c_ns: median(transfers).map(hundredths),
            c2c_class: class,
            memcpy_gbps: gbps(Limit::Copy).map(hundredths),
            pull_gbps: gbps(Limit::Pull).map(hundredths),
            shares: if has_shares { self.shares(bytes, summary.median, gbps) } else { Vec::new() },
            launches: Some(launches.len()),
            ..blank.clone().with(&summary)
        })
    }

    /// Returns the bandwidth as a share of each limit.
    fn shares(
        &self,
        bytes: usize,
        ns: f64,
        gbps: impl Fn(Limit) -> Option<f64>,
    ) -> Vec<(Limit, f64)> {
        let moved = self.what.bytes_moved(self.pes, bytes);
        self.share_limits()
            .iter()
            .filter_map(|&limit| Some((limit, moved / ns / gbps(limit)?)))
            .collect()
    }

    /// Returns the limits themselves as figures of peers: the time for a buffer of each size.
    pub fn limit_figures(&self, sizes: &[usize], collected: &RoundsOutcome) -> Vec<Figure> {
        let mut figures = Vec::new();
        let classes = [Some(TransferClass::Near), Some(TransferClass::Far)];
        for &bytes in sizes {
            for &limit in self.what.limits() {
                for class in classes {
                    let Some(gbps) = collected.limits.summary(limit, bytes, class) else {
                        continue;
                    };
                    let ns = |gbps: f64| bytes as f64 / gbps;
                    let (low, high) = gbps.ci95;
                    let summary = Summary {
                        median: ns(gbps.median),
                        ci95: (ns(high), ns(low)),
                        // The slowest reading, because a reading is already a median of several
                        // passes.
                        p99: ns(low),
                        count: gbps.count,
                    };
                    let blank = Figure {
                        bytes: Some(bytes),
                        c2c_class: class,
                        mode: "throughput",
                        arrival: Arrival::Together.name(),
                        peer: Some(format!("limit {limit}")),
                        ..self.blank()
                    };
                    figures.push(Figure { p99_ns: None, ..blank.with(&summary) });
                }
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use consort::{
        sync_modes::SyncModes,
        tune::{Candidate, Collective},
    };

    use super::{super::session::Block, *};
    use crate::query_json::sums;

    fn setting(what: Collective, mode: Mode) -> RunSettings {
        RunSettings {
            fabric: Fabric::Threads,
            what: Communication::Collective(what),
            pes: 3,
            mode,
            conditions: Conditions::default(),
            symmetric: true,
            waiting: Waiting::SpinYield,
            usable_cores: 4,
            cpus: Some(vec![0, 2, 3]),
        }
    }

    fn reduce() -> Work {
        let query = sums(Collective::Reduce, SyncModes::STRICT, 3, 8192, true);
        Work::of(&query, &Candidate::new("knomial").with("radix", 4))
    }

    fn timing(blocks: &[(f64, f64, Option<f64>)]) -> Timing {
        let block =
            |&(ns, p99_ns, transfer_ns)| Block { ns, p99_ns, transfer_ns, ..Block::default() };
        Timing {
            blocks: blocks.iter().map(block).collect(),
            algorithm: Some(Candidate::new("knomial").with("radix", 4)),
            ..Timing::default()
        }
    }

    #[test]
    fn what_a_figure_lacks_is_null() {
        let figure = setting(Collective::Barrier, Mode::Throughput).blank();
        let json = serde_json::to_value(&figure).unwrap();
        assert_eq!(json["placement"], "pinned:0,2,3");
        assert!(json["bytes"].is_null() && json["peer"].is_null() && json["c2c_class"].is_null());
    }

    #[test]
    fn each_class_has_its_figure_and_ratio() {
        let near = [(100.0, 100.0, Some(20.0)), (120.0, 120.0, Some(30.0))];
        let far = [(600.0, 600.0, Some(200.0))];
        let timing = timing(&[near.as_slice(), &far].concat());
        let setting = setting(Collective::Reduce, Mode::Throughput);
        let figures = setting.figures(&reduce(), &timing, &Limits::default());
        let [near, far] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!((near.reps, near.median_ns, near.c2c_ns), (2, Some(110.0), Some(25.0)));
        // The median of 100 / 20 and 120 / 30, not of the two medians.
        assert_eq!((near.ratio_to_limit, far.ratio_to_limit), (Some(4.5), Some(3.0)));
        let json = serde_json::to_value(far).unwrap();
        assert_eq!(json["c2c_class"], "far");
        assert_eq!(json["params"]["radix"], 4);
        assert_eq!((&json["sync"], &json["bytes"]), (&"strict".into(), &8192.into()));
    }

    #[test]
    fn latency_figure_has_p99_of_calls() {
        let timing = timing(&[(100.0, 150.0, None), (110.0, 170.0, None), (90.0, 900.0, None)]);
        let setting = setting(Collective::Reduce, Mode::Latency);
        let figures = setting.figures(&reduce(), &timing, &Limits::default());
        assert_eq!(figures.len(), 1);
        assert_eq!((figures[0].median_ns, figures[0].p99_ns), (Some(100.0), Some(170.0)));
        assert_eq!((figures[0].c2c_class, figures[0].ratio_to_limit), (None, None));
    }

    #[test]
    fn unmeasured_figure_says_why() {
        let setting = setting(Collective::Reduce, Mode::Latency);
        let figures = setting.figures(&reduce(), &timing(&[]), &Limits::default());
        assert_eq!((figures.len(), figures[0].reps, figures[0].median_ns), (1, 0, None));
        assert!(figures[0].is_ours());
        let why = |timing: &Timing| {
            setting.figures(&reduce(), timing, &Limits::default())[0].absent.clone().unwrap()
        };
        assert!(why(&timing(&[])).contains("interrupted"));
        assert!(why(&Timing { discarded: 2, ..timing(&[]) }).contains("machine changed"));
    }

    /// Two combinations of 8192 bytes in 8192 ns are 2 GB/s: half of a limit of 4.
    #[test]
    fn a_reduction_of_three_combines_twice() {
        let setting = setting(Collective::Reduce, Mode::Latency);
        let shares = setting.shares(8192, 8192.0, |limit| (limit == Limit::Combine).then_some(4.0));
        assert_eq!(shares, [(Limit::Combine, 0.5)]);
    }
}
