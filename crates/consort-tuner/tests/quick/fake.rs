//! An imaginary machine: true costs, a model with errors, noise from a seed, and time that passes
//! only during measurements.

use std::{convert::Infallible, time::Duration};

use consort_fabric::{
    CallSpec, Candidate, Collective, OperatorClass, Query, SyncModes, splitmix64,
};
use consort_tuner::{Block, Catalog, TransferClass, Workbench};

/// The largest message that the algorithm `line` can serve.
pub(crate) const LINE_BYTES: u64 = 56;

/// The largest element that the algorithm `line` can serve.
pub(crate) const LARGEST_ELEMENT: usize = 64;

/// The best radices of the parts of a composed candidate.
pub(crate) const BEST_RADICES: [f64; 2] = [8.0, 4.0];

pub(crate) struct Fake {
    state: u64,
    now: Duration,
    /// Each measured query, with its candidates.
    pub(crate) log: Vec<(Query, Vec<Candidate>)>,
    /// The start of each of these measurements.
    pub(crate) begun: Vec<Duration>,
    /// An algorithm that cannot be measured.
    pub(crate) broken: Option<&'static str>,
    /// Whether there is an additional algorithm.
    pub(crate) extended: bool,
    /// An algorithm whose candidates are all equivalent.
    pub(crate) alike: Option<&'static str>,
    /// Whether there is an algorithm made of parts.
    pub(crate) has_parts: bool,
    /// The shortest time of a launch.
    pub(crate) least: Duration,
    /// Whether other programs disturb all blocks.
    pub(crate) is_disturbed: bool,
    /// The time at which they end.
    pub(crate) disturbed_until: Duration,
    /// The time at which launches end.
    pub(crate) end: Option<Duration>,
}

impl Fake {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            now: Duration::ZERO,
            log: Vec::new(),
            begun: Vec::new(),
            broken: None,
            extended: false,
            alike: None,
            has_parts: false,
            least: Duration::ZERO,
            is_disturbed: false,
            disturbed_until: Duration::MAX,
            end: None,
        }
    }

    fn is_busy(&self) -> bool {
        self.is_disturbed && self.now < self.disturbed_until
    }

    fn random(&mut self) -> f64 {
        random(&mut self.state)
    }

    /// Returns the true time of a call, which only the tests may use.
    pub(crate) fn true_ns(query: &Query, candidate: &Candidate) -> f64 {
        let pes = f64::from(query.pes);
        let bytes = query.bytes as f64;
        let radix = candidate.parameter("radix").unwrap_or(1) as f64;
        let send_ns = 30.0 + bytes / 10.0;
        let moving_ns = match candidate.algorithm.as_str() {
            "line" => 90.0 * pes.log2().ceil().max(1.0),
            "flat" => 120.0 + (pes - 1.0) * send_ns,
            "knomial" => {
                let depth = (pes.ln() / (radix + 1.0).ln()).ceil();
                depth * (100.0 + radix * send_ns)
            }
            "pipelined" => {
                let chunk = candidate.parameter("chunk_bytes").unwrap_or(1) as f64;
                (pes - 1.0 + bytes / chunk) * (150.0 + chunk / 10.0)
            }
            // The best of each part is faster than anything else.
            "two_level" => {
                let parts = candidate.parts.iter();
                let radices = parts.map(|part| part.parameter("radix").unwrap_or(1) as f64);
                radices.zip(BEST_RADICES).map(|(own, best)| 10.0 + (own - best).powi(2)).sum()
            }
            other => panic!("no algorithm {other}"),
        };
        let waiting_ns = match query.sync {
            SyncModes::STRICT => 300.0,
            SyncModes::LOOSE => 0.0,
            _ => 100.0,
        };
        let ordering = if query.operator == OperatorClass::Ordered { 1.05 } else { 1.0 };
        let exposing_ns = if query.symmetric { 0.0 } else { 80.0 };
        let barrier_share = if query.collective == Collective::Barrier { 0.5 } else { 1.0 };
        (moving_ns * ordering + waiting_ns + exposing_ns) * barrier_share
    }

    /// Returns the shortest true time of any candidate.
    pub(crate) fn best_ns(&self, query: &Query) -> f64 {
        let candidates = self.candidates(query);
        candidates.iter().map(|c| Self::true_ns(query, c)).fold(f64::INFINITY, f64::min)
    }
}

fn random(state: &mut u64) -> f64 {
    (splitmix64(state) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Catalog for Fake {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        let mut all = vec![Candidate::new("flat")];
        if query.bytes <= LINE_BYTES {
            all.push(Candidate::new("line"));
        }
        let radices = [1, 2, 3, 4, 8].into_iter().filter(|&radix| radix < query.pes.max(2).into());
        all.extend(radices.map(|radix| Candidate::new("knomial").with("radix", radix)));
        if self.extended {
            all.push(Candidate::new("knomial").with("radix", 16));
        }
        if query.collective != Collective::Barrier {
            let chunks = [1024, 8192, 65_536];
            all.extend(chunks.map(|c| Candidate::new("pipelined").with("chunk_bytes", c)));
        }
        if self.has_parts {
            let of = |radices: [u64; 2]| {
                let parts = radices.map(|radix| Candidate::new("knomial").with("radix", radix));
                parts.into_iter().fold(Candidate::new("two_level"), Candidate::of)
            };
            all.push(of([2, 2]));
            all.extend([4, 8].into_iter().flat_map(|radix| [of([radix, 2]), of([2, radix])]));
        }
        all
    }

    /// Returns the true time multiplied by an error of 0.5 to 1.5, which depends on the candidate.
    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let name = candidate.to_string();
        let mut hash = name.bytes().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte))
        });
        Self::true_ns(query, candidate) * (0.5 + random(&mut hash))
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        let fits = candidate.algorithm != "line" || call.element_bytes <= LARGEST_ELEMENT;
        fits && self.candidates(&call.query()).contains(candidate)
    }

    fn fingerprint(&self, _: &Query, candidate: &Candidate) -> Option<u64> {
        (self.alike == Some(candidate.algorithm.as_str())).then_some(1)
    }
}

impl Workbench for Fake {
    type Error = Infallible;

    /// Returns true times multiplied by 1 to 1.3, occasionally by up to 5. All times of a run are
    /// less than half as long if the cores happen to be near.
    fn launch(
        &mut self,
        query: &Query,
        candidates: &[Candidate],
        budget: Duration,
    ) -> Result<Vec<Option<Vec<Block>>>, Infallible> {
        self.log.push((*query, candidates.to_vec()));
        self.begun.push(self.now);
        let whole = self.now + budget.max(self.least);
        self.now = self.end.map_or(whole, |end| whole.min(end.max(self.now)));
        if self.now < whole {
            return Ok(vec![Some(Vec::new()); candidates.len()]);
        }
        let each_ns = budget.as_nanos() as f64 / candidates.len() as f64;
        let is_near = self.random() < 0.3;
        let (scale, class) =
            if is_near { (0.4, TransferClass::Near) } else { (1.0, TransferClass::Far) };
        let sample = |candidate: &Candidate| {
            if self.broken == Some(candidate.algorithm.as_str()) {
                return None;
            }
            let true_ns = Self::true_ns(query, candidate);
            let wanted = (each_ns / true_ns / 100.0).clamp(7.0, 60.0);
            let times = (0..60).take_while(|&index| f64::from(index) < wanted).map(|_| {
                let outlier = if self.random() < 0.1 { 4.0 * self.random() } else { 0.0 };
                true_ns * scale * (1.0 + 0.3 * self.random() + outlier)
            });
            let times: Vec<f64> = times.collect();
            let is_disturbed = self.is_busy();
            let block = |(ns, turn)| Block { ns, class: Some(class), turn, is_disturbed };
            Some(times.into_iter().zip(0..).map(block).collect())
        };
        Ok(candidates.iter().map(sample).collect())
    }

    fn wait_for_cores(&mut self, most: Duration) -> bool {
        if self.is_busy() {
            self.now += most;
        }
        !self.is_busy()
    }

    fn end_within(&mut self, left: Option<Duration>) {
        self.end = left.map(|left| self.now + left);
    }

    fn now(&self) -> Duration {
        self.now
    }
}

/// A reduction, for which every property of a query matters.
pub(crate) const REDUCE: Query = Query {
    collective: Collective::Reduce,
    sync: SyncModes::MINE,
    pes: 8,
    bytes: 64,
    operator: OperatorClass::Commutative,
    symmetric: true,
};
