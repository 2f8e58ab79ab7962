//! A machine with known times and noise, in virtual time.
//!
//! The candidates, the model and the times without noise are those of [`Fake`]. If cores are near,
//! each candidate is faster, by a factor of its own. A launch places threads and pages, which makes
//! some candidates faster by a few per cent. Each block takes 0.3 ms, stretched by the noise.

use std::{convert::Infallible, f64::consts::TAU, sync::OnceLock, time::Duration};

use consort_fabric::{CallSpec, Candidate, Query, splitmix64};
use consort_tuner::{Block, Catalog, TransferClass, Workbench};

use crate::fake::Fake;

const BLOCK_NS: f64 = 300_000.0;
/// The time between blocks, and that of a launch without its blocks.
const GAP_NS: f64 = 100_000.0;
const LAUNCH_NS: f64 = 1_000_000.0;
/// How far a launch moves the times of a candidate.
const PLACES: f64 = 0.04;
/// The share of disturbed blocks in which the system reports a disturbance.
const REPORTED: f64 = 0.9;

/// Blocks of 0.17 ms of arithmetic on two pinned cores, while four processes kept the machine of
/// two cores busy.
const RECORDED: &str = include_str!("recorded.txt");

/// A kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noise {
    /// A few per cent, and few outliers.
    Quiet,
    /// The processor becomes faster and slower within seconds.
    Drift,
    /// Cores are near or far for a third of a second each.
    Bimodal,
    /// Cores are far in one tune, near in the next, and far in the third.
    Moved,
    /// Other processes take a core for milliseconds.
    Bursts,
    /// One core is slow for a third of the time. Candidates depend on it differently.
    SlowCore,
    /// A recording of a busy machine.
    Recorded,
    /// All of them except `Moved` and the recording.
    Everything,
}

impl Noise {
    /// Returns the classes of the transfer that occur.
    pub(super) fn classes(self) -> &'static [TransferClass] {
        match self {
            Self::Bimodal | Self::Moved | Self::Everything => {
                &[TransferClass::Near, TransferClass::Far]
            }
            _ => &[TransferClass::Far],
        }
    }

    fn has(self, other: Self) -> bool {
        self == other || self == Self::Everything
    }
}

/// A state that is on and off for random times.
#[derive(Debug)]
struct Toggle {
    is_on: bool,
    until_ns: f64,
    mean_ns: [f64; 2],
}

impl Toggle {
    fn new(mean_off_ms: f64, mean_on_ms: f64) -> Self {
        Self { is_on: false, until_ns: 0.0, mean_ns: [mean_off_ms * 1e6, mean_on_ms * 1e6] }
    }

    fn at(&mut self, now_ns: f64, state: &mut u64) -> bool {
        while self.until_ns <= now_ns {
            self.is_on = !self.is_on;
            self.until_ns -= self.mean_ns[usize::from(self.is_on)] * (1.0 - random(state)).ln();
        }
        self.is_on
    }
}

/// A machine.
#[derive(Debug)]
pub(super) struct Machine {
    noise: Noise,
    /// The number of tunes before.
    pub(super) tune: usize,
    state: u64,
    now_ns: f64,
    near: Toggle,
    burst: Toggle,
    slow_core: Toggle,
    /// The random part of the drift, and the next row of the recording.
    walk: f64,
    row: usize,
}

impl Machine {
    pub(super) fn new(noise: Noise, seed: u64) -> Self {
        Self {
            noise,
            tune: 0,
            state: seed,
            now_ns: 0.0,
            near: Toggle::new(300.0, 300.0),
            burst: Toggle::new(20.0, 4.0),
            slow_core: Toggle::new(700.0, 300.0),
            walk: 0.0,
            row: usize::try_from(seed).unwrap() * 100,
        }
    }

    pub(super) fn candidates_for(query: &Query) -> Vec<Candidate> {
        Fake::new(0).candidates(query)
    }

    /// Returns the time without noise, over the classes that occur.
    pub(super) fn true_ns(noise: Noise, query: &Query, candidate: &Candidate) -> f64 {
        let classes = noise.classes();
        let sum: f64 = classes.iter().map(|&class| Self::true_ns_in(class, query, candidate)).sum();
        sum / classes.len() as f64
    }

    /// Returns the time without noise in a class.
    pub(super) fn true_ns_in(class: TransferClass, query: &Query, candidate: &Candidate) -> f64 {
        let advantage = match class {
            TransferClass::Near => 0.3 + 0.4 * trait_of(candidate, 1),
            TransferClass::Far => 1.0,
        };
        advantage * Fake::true_ns(query, candidate)
    }

    fn random(&mut self) -> f64 {
        random(&mut self.state)
    }

    fn class(&mut self) -> TransferClass {
        let is_near = match self.noise {
            Noise::Moved => self.tune % 2 == 1,
            noise => noise.has(Noise::Bimodal) && self.near.at(self.now_ns, &mut self.state),
        };
        match is_near {
            true => TransferClass::Near,
            false => TransferClass::Far,
        }
    }

    /// Returns how much longer a block takes now, and whether that is a disturbance which the
    /// system can see.
    fn stretch(&mut self, candidate: &Candidate) -> (f64, bool) {
        let (mut stretch, mut is_disturbed) = (1.0 + 0.03 * self.random(), false);
        if self.random() < 0.02 {
            stretch += 4.0 * self.random();
        }
        if self.noise.has(Noise::Drift) {
            self.walk = 0.999 * self.walk + 0.01 * (self.random() - 0.5);
            stretch *= (0.4 * (TAU * self.now_ns / 3e9).sin() + self.walk).exp();
        }
        if self.noise.has(Noise::Bursts) && self.burst.at(self.now_ns, &mut self.state) {
            let lost_ns = 4e6 * (1.0 + self.random());
            stretch += lost_ns / BLOCK_NS;
            is_disturbed = true;
        }
        if self.noise.has(Noise::SlowCore) && self.slow_core.at(self.now_ns, &mut self.state) {
            stretch *= 1.0 + trait_of(candidate, 2);
        }
        (stretch, is_disturbed)
    }

    /// Returns whether others use its cores now.
    fn is_busy(&mut self) -> bool {
        match self.noise {
            Noise::Recorded => recording()[self.row % recording().len()].switches > 0.0,
            noise => noise.has(Noise::Bursts) && self.burst.at(self.now_ns, &mut self.state),
        }
    }

    /// Measures a block; `None` if the transfer before and after it differ too much.
    fn block(&mut self, query: &Query, candidate: &Candidate) -> Option<Block> {
        let before = self.class();
        let (mut stretch, mut is_disturbed) = self.stretch(candidate);
        let mut is_steady = true;
        if self.noise == Noise::Recorded {
            let rows = recording();
            let row = rows[self.row % rows.len()];
            self.row += 1;
            stretch = row.stretch;
            is_disturbed = row.switches > 0.0;
            is_steady =
                (row.after_ns - row.before_ns).abs() <= 0.2 * row.before_ns.min(row.after_ns);
        }
        self.now_ns += BLOCK_NS * stretch + GAP_NS;
        let class = Some(before);
        let is_disturbed = is_disturbed && self.random() < REPORTED;
        let ns = stretch * Self::true_ns_in(before, query, candidate);
        (is_steady && self.class() == before).then_some(Block { ns, class, turn: 0, is_disturbed })
    }
}

/// Returns a property of an algorithm, from 0 to 1.
fn trait_of(candidate: &Candidate, which: u64) -> f64 {
    let mut state = candidate
        .to_string()
        .bytes()
        .fold(which, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte)));
    random(&mut state)
}

fn random(state: &mut u64) -> f64 {
    (splitmix64(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A block of the recording.
#[derive(Clone, Copy, Debug)]
struct Row {
    stretch: f64,
    before_ns: f64,
    after_ns: f64,
    switches: f64,
}

fn recording() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let row = |line: &str| {
            let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
            let mut next = || numbers.next().unwrap();
            Row { stretch: next(), before_ns: next(), after_ns: next(), switches: next() }
        };
        RECORDED.lines().skip(1).map(row).collect()
    })
}

impl Catalog for Machine {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        Self::candidates_for(query)
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        Fake::new(0).estimate_ns(query, candidate)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        Fake::new(0).serves(call, candidate)
    }
}

impl Workbench for Machine {
    type Error = Infallible;

    fn launch(
        &mut self,
        query: &Query,
        candidates: &[Candidate],
        budget: Duration,
    ) -> Result<Vec<Option<Vec<Block>>>, Infallible> {
        let end_ns = self.now_ns + budget.as_nanos() as f64;
        self.now_ns += LAUNCH_NS;
        let places: Vec<f64> =
            candidates.iter().map(|_| 1.0 + PLACES * (2.0 * self.random() - 1.0)).collect();
        let mut blocks = vec![Vec::new(); candidates.len()];
        for turn in 0.. {
            for (index, candidate) in candidates.iter().enumerate() {
                if let Some(block) = self.block(query, candidate) {
                    blocks[index].push(Block { ns: block.ns * places[index], turn, ..block });
                }
            }
            if self.now_ns >= end_ns {
                break;
            }
        }
        Ok(blocks.into_iter().map(Some).collect())
    }

    fn wait_for_cores(&mut self, most: Duration) -> bool {
        let end_ns = self.now_ns + most.as_nanos() as f64;
        while self.is_busy() && self.now_ns < end_ns {
            self.now_ns += GAP_NS;
            self.row += usize::from(self.random() * BLOCK_NS < GAP_NS);
        }
        !self.is_busy()
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now_ns * 1e-9)
    }
}
