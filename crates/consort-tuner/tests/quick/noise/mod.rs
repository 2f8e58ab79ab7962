//! The statistics of a search, on machines whose noise and true times are known.
//!
//! A machine is tuned without wisdom and then twice again, with several seeds. Then each choice is
//! compared with the best candidate and with the choice before, by the times without noise. After a
//! change of the search, these figures must still be within the limits. To see the figures: `cargo
//! test -p consort-tuner --test quick noise -- --nocapture`.

mod machine;

use std::{sync::atomic::AtomicBool, time::Duration};

use consort_fabric::{CallSpec, Candidate, Collective, Query, SyncModes};
use consort_tuner::{Grid, Identity, Measurements, Rigour, Search, Selector, Wisdom, Workload};

use machine::{Machine, Noise};

const CORES: usize = 8;
/// A PE on each core.
const PES: u32 = 8;
/// With fewer seeds, the figures vary by chance.
const SEEDS: u64 = 24;
/// The tunes of one machine: from nothing, and again.
const TUNES: usize = 3;
/// The time for a query: about as much as in a tune of all calls with the default budget.
const TIME: Duration = Duration::from_millis(200);
/// A choice is worse than the one before if it is slower by this share of the time...
const WORSE: f64 = 0.02;
/// ... and wrong if it is slower than the best by this share.
const WRONG: f64 = 0.1;

/// How good the choices are that searches made on one kind of machine.
#[derive(Debug, Default)]
struct Account {
    /// The number of choices after each tune.
    choices: usize,
    /// How many of them replaced another choice.
    replaced: usize,
    /// How many replaced a faster one.
    worse: usize,
    /// How many replaced one that is faster in a class of the transfer.
    worse_in_class: usize,
    /// How many are much slower than the best.
    wrong: usize,
    /// The sum of their relative slowdowns against the best.
    regret: f64,
}

impl Account {
    fn add(&mut self, noise: Noise, query: &Query, before: &Candidate, after: &Candidate) {
        let ns = |candidate: &Candidate| Machine::true_ns(noise, query, candidate);
        let candidates = Machine::candidates_for(query);
        let best_ns = candidates.iter().map(ns).fold(f64::INFINITY, f64::min);
        let slower = |share: f64, one_ns: f64, other_ns: f64| one_ns > (1.0 + share) * other_ns;
        self.choices += 1;
        self.replaced += usize::from(before != after);
        self.worse += usize::from(slower(WORSE, ns(after), ns(before)));
        let is_slower = |&class: &_| {
            let ns = |one| Machine::true_ns_in(class, query, one);
            slower(WORSE, ns(after), ns(before))
        };
        self.worse_in_class += usize::from(noise.classes().iter().any(is_slower));
        self.wrong += usize::from(slower(WRONG, ns(after), best_ns));
        self.regret += ns(after) / best_ns - 1.0;
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.choices as f64
    }

    fn mean_regret(&self) -> f64 {
        self.regret / self.choices as f64
    }
}

fn queries() -> Vec<Query> {
    use Collective::{AllToAll, Barrier, Broadcast, Reduce};
    let grid = Grid {
        collectives: vec![Barrier, Broadcast, Reduce, AllToAll],
        syncs: vec![SyncModes::MINE],
        pes: vec![2, PES],
        symmetric: vec![true],
        bytes: vec![8, 64, 1 << 10, 16 << 10],
        ..Grid::new(CORES, &[])
    };
    grid.points()
}

fn choice(machine: &Machine, wisdom: &Wisdom, query: &Query) -> Candidate {
    let selector = Selector::new(machine, Measurements::Wisdom(wisdom, CORES));
    selector.select(&CallSpec::from(query)).unwrap().candidate.into_owned()
}

fn tuned(noise: Noise) -> Account {
    let (queries, stop) = (queries(), AtomicBool::new(false));
    let mut account = Account::default();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(noise, seed);
        let mut wisdom = Wisdom::new(Identity::new("noisy", &machine));
        for tune in 0..TUNES {
            machine.tune = tune;
            let choices = |wisdom: &Wisdom, machine: &Machine| -> Vec<Candidate> {
                queries.iter().map(|query| choice(machine, wisdom, query)).collect()
            };
            let before = choices(&wisdom, &machine);
            let count = u32::try_from(queries.len()).unwrap();
            let search = Search {
                workload: Workload::exactly(queries.iter().map(|&query| (query, 1.0))),
                rigour: Rigour::Measure,
                budget: TIME * count,
                retune: tune > 0,
                cores: CORES,
                stop: &stop,
            };
            search.run(&mut machine, &mut wisdom, &mut ()).unwrap();
            let after = choices(&wisdom, &machine);
            for (query, (before, after)) in queries.iter().zip(before.iter().zip(&after)) {
                account.add(noise, query, before, after);
            }
        }
    }
    account
}

/// The limits for each kind of noise: the number of choices that are worse than before, of those
/// worse in a class of the transfer, the share of wrong choices, and the mean regret.
const LIMITS: [(Noise, usize, usize, f64, f64); 8] = [
    (Noise::Quiet, 0, 0, 0.0, 0.0011),
    (Noise::Drift, 0, 0, 0.0, 0.0011),
    (Noise::Bimodal, 1, 1, 0.041, 0.021),
    // The first tune sees one class only.
    (Noise::Moved, 44, 44, 0.039, 0.023),
    (Noise::Bursts, 0, 0, 0.0, 0.0022),
    (Noise::SlowCore, 4, 4, 0.0033, 0.001),
    // Many queries keep the model's choice, because the time does not suffice for their finals.
    (Noise::Recorded, 11, 11, 0.065, 0.052),
    (Noise::Everything, 11, 19, 0.043, 0.022),
];

#[test]
fn noise_does_not_fool_the_search() {
    let mut exceeded = Vec::new();
    println!("noise       choices replaced worse in class wrong regret");
    for (noise, worse, worse_in_class, wrong, regret) in LIMITS {
        let account = tuned(noise);
        println!(
            "{:10} {:8} {:8} {:5} {:8} {:4.1}% {:5.1}%",
            format!("{noise:?}"),
            account.choices,
            account.replaced,
            account.worse,
            account.worse_in_class,
            100.0 * account.share(account.wrong),
            100.0 * account.mean_regret(),
        );
        let is_within = account.worse <= worse
            && account.worse_in_class <= worse_in_class
            && account.share(account.wrong) <= wrong
            && account.mean_regret() <= regret
            && account.replaced > 0;
        exceeded.extend((!is_within).then_some((noise, account)));
    }
    assert!(exceeded.is_empty(), "{exceeded:?}");
}
