//! One figure: a line of JSON, or of a table.

use std::{borrow::Cow, collections::BTreeMap};

use consort::{Arrival, Collective, Waiting};
use consort_fabric::statistics::Summary;
use consort_native::{limits::TransferClass, topology::Topology};
use serde::{Serialize, Serializer};

use super::{Buffers, options::Options};
use crate::{
    bench::{
        limits::{Limit, Limits},
        rounds::{Collected, of_class},
        session::{Conditions, Mode, Timing},
        work::Work,
    },
    peers,
};

/// What is the same for all figures of a run.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) what: Collective,
    pub(super) pes: u32,
    pub(super) mode: Mode,
    pub(super) conditions: Conditions,
    pub(super) buffers: Buffers,
    pub(super) waiting: Waiting,
    pub(super) usable_cores: usize,
    /// The processor of each PE, where each has one.
    pub(super) cpus: Option<Vec<u32>>,
}

/// What one kind of work takes in one class of the transfer. A key that does not apply is null.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figure {
    pub(crate) bench: &'static str,
    pub(crate) fabric: Cow<'static, str>,
    pub(crate) pes: u32,
    pub(crate) team: &'static str,
    pub(crate) algorithm: Option<String>,
    pub(crate) params: Option<BTreeMap<String, u64>>,
    pub(crate) sync: Option<String>,
    pub(crate) bytes: Option<usize>,
    pub(crate) mode: &'static str,
    pub(crate) arrival: &'static str,
    pub(crate) placement: String,
    pub(crate) waiting: Option<String>,
    pub(crate) median_ns: Option<f64>,
    pub(crate) ci95_ns: Option<(f64, f64)>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) reps: usize,
    pub(crate) peer: Option<String>,
    /// The median over the blocks of their time in transfers of their moment.
    pub(crate) ratio_to_limit: Option<f64>,
    pub(crate) c2c_ns: Option<f64>,
    #[serde(serialize_with = "class")]
    pub(crate) c2c_class: Option<TransferClass>,
    pub(crate) memcpy_gbps: Option<f64>,
    pub(crate) pull_gbps: Option<f64>,
    /// Bandwidth as a share of that limit; for people.
    #[serde(skip)]
    pub(crate) shares: Vec<(Limit, f64)>,
    /// Blocks that were discarded; for people.
    #[serde(skip)]
    pub(crate) discarded: usize,
    /// Why there is no figure; for people.
    #[serde(skip)]
    pub(crate) absent: Option<String>,
    /// Whether Consort chose the algorithm; for people.
    #[serde(skip)]
    pub(crate) chosen: bool,
}

fn class<S: Serializer>(class: &Option<TransferClass>, serializer: S) -> Result<S::Ok, S::Error> {
    match class {
        Some(class) => serializer.collect_str(class),
        None => serializer.serialize_none(),
    }
}

impl Figure {
    /// Of Consort itself, not of another library or the machine.
    pub(super) fn is_ours(&self) -> bool {
        self.peer.is_none()
    }

    /// Of the machine.
    pub(super) fn is_limit(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.starts_with("limit "))
    }

    /// Half the interval of the median, in per cent of it.
    pub(super) fn precision_percent(&self) -> Option<f64> {
        let (low, high) = self.ci95_ns?;
        Some((high - low) / 2.0 / self.median_ns? * 100.0)
    }

    /// The same with the times of `summary`.
    pub(crate) fn with(self, summary: &Summary) -> Figure {
        Figure {
            median_ns: Some(hundredths(summary.median)),
            ci95_ns: Some((hundredths(summary.ci95.0), hundredths(summary.ci95.1))),
            p99_ns: Some(hundredths(summary.p99)),
            reps: summary.count,
            ..self
        }
    }
}

impl Setting {
    pub(super) fn new(options: &Options, waiting: Waiting) -> Setting {
        let topology = Topology::discover();
        let cpus = topology.placement(options.session.pes as usize);
        Setting {
            what: options.what,
            pes: options.session.pes,
            mode: options.session.mode,
            conditions: options.conditions,
            buffers: options.buffers,
            waiting,
            usable_cores: topology.usable_cores(),
            cpus: cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect()),
        }
    }

    /// Whether contributors rewrite their buffers.
    pub(super) fn rewrites(&self) -> bool {
        self.mode == Mode::Latency && self.conditions.rewrite
    }

    /// The limits that a collective's bandwidth is a share of. Data that nobody rewrites may come
    /// from a core's own cache.
    pub(super) fn share_limits(&self) -> &'static [Limit] {
        match self.what {
            Collective::Barrier => &[],
            what if what.combines() => &[Limit::Combine, Limit::PullCombine],
            _ if self.rewrites() => &[Limit::Pull],
            _ => &[Limit::Copy],
        }
    }

    /// A figure without times.
    pub(super) fn blank(&self) -> Figure {
        let placement = self.cpus.as_ref().map_or("unpinned".to_owned(), |cpus| {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("pinned:{}", cpus.join(","))
        });
        Figure {
            bench: self.what.name(),
            fabric: "threads".into(),
            pes: self.pes,
            team: "world",
            mode: self.mode.name(),
            arrival: self.conditions.arrival.name(),
            placement,
            ..Figure::default()
        }
    }

    /// What became of one work: a figure for each class with blocks of it, or one without times.
    pub(super) fn figures(&self, work: &Work, timing: &Timing, limits: &Limits) -> Vec<Figure> {
        let bytes = Some(work.bytes()).filter(|&bytes| bytes > 0);
        let blank = Figure { bytes, discarded: timing.discarded, ..self.blank() };
        let blank = match work {
            Work::Consort { sync, candidate, .. } => {
                let served = timing.algorithm.as_ref().or(candidate.as_ref());
                Figure {
                    algorithm: served.map(|served| served.algorithm.clone()),
                    params: served.map(|served| served.parameters.clone()),
                    sync: Some(sync.to_string()),
                    waiting: Some(self.waiting.to_string()),
                    chosen: candidate.is_none(),
                    ..blank
                }
            }
            Work::Peer { index, .. } => Figure {
                fabric: "threads".into(),
                // A barrier before and one after: all enter and leave together.
                sync: Some("strict".to_owned()),
                peer: peers::names().get(*index).map(|&name| name.to_owned()),
                ..blank
            },
        };
        let classes = [Some(TransferClass::Near), Some(TransferClass::Far), None];
        let figures: Vec<Figure> = classes
            .into_iter()
            .filter_map(|class| self.of_class(&blank, work, timing, limits, class))
            .collect();
        if figures.is_empty() {
            let error = timing.error.as_ref().map(ToString::to_string);
            let why = error.unwrap_or("the machine changed during every block".to_owned());
            return vec![Figure { absent: Some(why), ..blank }];
        }
        figures
    }

    fn of_class(
        &self,
        blank: &Figure,
        work: &Work,
        timing: &Timing,
        limits: &Limits,
        class: Option<TransferClass>,
    ) -> Option<Figure> {
        let blocks = of_class(timing, class);
        let median = |values: Vec<f64>| (!values.is_empty()).then(|| Summary::of(&values).median);
        let summary = (!blocks.is_empty())
            .then(|| Summary::of(&blocks.iter().map(|block| block.ns).collect::<Vec<f64>>()))?;
        let p99_ns = match self.mode {
            Mode::Throughput => summary.p99,
            Mode::Latency => median(blocks.iter().map(|block| block.p99_ns).collect())?,
        };
        let transfers = blocks.iter().filter_map(|block| block.transfer_ns).collect();
        let ratios =
            blocks.iter().filter_map(|block| Some(block.ns / block.transfer_ns?)).collect();
        let gbps = |limit| limits.summary(limit, work.bytes(), class).map(|limit| limit.median);
        Some(Figure {
            p99_ns: Some(hundredths(p99_ns)),
            ratio_to_limit: median(ratios).map(hundredths),
            c2c_ns: median(transfers).map(hundredths),
            c2c_class: class,
            memcpy_gbps: gbps(Limit::Copy).map(hundredths),
            pull_gbps: gbps(Limit::Pull).map(hundredths),
            shares: self.shares(work.bytes(), summary.median, gbps),
            ..blank.clone().with(&summary)
        })
    }

    /// What was moved in the time, as a share of what one core could have moved.
    fn shares(
        &self,
        bytes: usize,
        ns: f64,
        gbps: impl Fn(Limit) -> Option<f64>,
    ) -> Vec<(Limit, f64)> {
        let moved = bytes_moved(self.what, self.pes, bytes);
        self.share_limits()
            .iter()
            .filter_map(|&limit| Some((limit, moved / ns / gbps(limit)?)))
            .collect()
    }

    /// The limits themselves, as if they were peers: the time for a buffer of each size.
    pub(super) fn limit_figures(&self, sizes: &[usize], collected: &Collected) -> Vec<Figure> {
        let mut figures = Vec::new();
        let classes = [Some(TransferClass::Near), Some(TransferClass::Far)];
        for &bytes in sizes {
            for &limit in super::limits(self.what) {
                for class in classes {
                    let Some(gbps) = collected.limits.summary(limit, bytes, class) else {
                        continue;
                    };
                    let ns = |gbps: f64| bytes as f64 / gbps;
                    let (low, high) = gbps.ci95;
                    let summary = Summary {
                        median: ns(gbps.median),
                        ci95: (ns(high), ns(low)),
                        // The slowest: a slice is already a median of several passes.
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

/// Bytes that a core has to move one after the other: to each receiver its copy, all at once; and
/// one combination fewer than there are contributions.
fn bytes_moved(what: Collective, pes: u32, bytes: usize) -> f64 {
    let others = pes.saturating_sub(1);
    let times = match what.regular() {
        Collective::Barrier => 0,
        Collective::Broadcast | Collective::Scatter | Collective::Gather => 1,
        // Everyone has to receive as many blocks, or to combine them; partial results of an
        // all-reduce or a scan can be shared out among all.
        Collective::AllGather
        | Collective::Exchange
        | Collective::Reduce
        | Collective::AllReduce
        | Collective::ReduceScatter => others,
        Collective::Scan | Collective::ExclusiveScan => 1.min(others),
        varied => unreachable!("{varied} is not regular"),
    };
    f64::from(times) * bytes as f64
}

/// Nothing here is more exact.
pub(crate) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::session::Block;
    use consort::{Candidate, Sync};

    const KEYS: [&str; 22] = [
        "algorithm",
        "arrival",
        "bench",
        "bytes",
        "c2c_class",
        "c2c_ns",
        "ci95_ns",
        "fabric",
        "median_ns",
        "memcpy_gbps",
        "mode",
        "p99_ns",
        "params",
        "peer",
        "pes",
        "placement",
        "pull_gbps",
        "ratio_to_limit",
        "reps",
        "sync",
        "team",
        "waiting",
    ];

    fn setting(what: Collective, mode: Mode) -> Setting {
        Setting {
            what,
            pes: 3,
            mode,
            conditions: Conditions::default(),
            buffers: Buffers::Symmetric,
            waiting: Waiting::SpinYield,
            usable_cores: 4,
            cpus: Some(vec![0, 2, 3]),
        }
    }

    fn reduce() -> Work {
        Work::Consort {
            collective: Collective::Reduce,
            sync: Sync::STRICT,
            bytes: 8192,
            symmetric: true,
            candidate: Some(Candidate::new("knomial").with("radix", 4)),
        }
    }

    fn timing(blocks: &[(f64, f64, Option<f64>)]) -> Timing {
        let block = |&(ns, p99_ns, transfer_ns)| Block { ns, p99_ns, transfer_ns };
        Timing {
            blocks: blocks.iter().map(block).collect(),
            algorithm: Some(Candidate::new("knomial").with("radix", 4)),
            ..Timing::default()
        }
    }

    #[test]
    fn the_keys_are_these() {
        let figure = setting(Collective::Barrier, Mode::Throughput).blank();
        let json = serde_json::to_value(&figure).unwrap();
        let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, KEYS);
        assert_eq!(json["placement"], "pinned:0,2,3");
        assert!(json["bytes"].is_null() && json["peer"].is_null() && json["c2c_class"].is_null());
    }

    #[test]
    fn each_class_has_a_figure_and_a_ratio_of_its_own() {
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
    fn calls_alone_have_a_tail_of_calls() {
        let timing = timing(&[(100.0, 150.0, None), (110.0, 170.0, None), (90.0, 900.0, None)]);
        let setting = setting(Collective::Reduce, Mode::Latency);
        let figures = setting.figures(&reduce(), &timing, &Limits::default());
        assert_eq!(figures.len(), 1);
        assert_eq!((figures[0].median_ns, figures[0].p99_ns), (Some(100.0), Some(170.0)));
        assert_eq!((figures[0].c2c_class, figures[0].ratio_to_limit), (None, None));
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let setting = setting(Collective::Reduce, Mode::Latency);
        let figures = setting.figures(&reduce(), &timing(&[]), &Limits::default());
        assert_eq!((figures.len(), figures[0].reps, figures[0].median_ns), (1, 0, None));
        assert!(figures[0].absent.is_some() && figures[0].is_ours());
    }

    /// Two combinations of 8192 bytes in 8192 ns are 2 GB/s: half of a limit of 4.
    #[test]
    fn a_reduction_of_three_combines_twice() {
        let setting = setting(Collective::Reduce, Mode::Latency);
        let shares = setting.shares(8192, 8192.0, |limit| (limit == Limit::Combine).then_some(4.0));
        assert_eq!(shares, [(Limit::Combine, 0.5)]);
        assert_eq!(bytes_moved(Collective::Broadcast, 3, 64), 64.0);
        assert_eq!(bytes_moved(Collective::Reduce, 1, 64), 0.0);
    }
}
