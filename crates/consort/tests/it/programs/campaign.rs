//! Many programs one after the other, with a limit of time for each.

use std::{
    collections::hash_map::RandomState,
    env,
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use consort_conformance::turns::alone;

use super::{
    generate,
    job::launch,
    judge::{Fault, judge},
    mutate::{Role, mutations},
    program::Program,
};

/// What a program needs at most. The slowest mutation takes 700 ms.
const LIMIT: Duration = Duration::from_secs(20);

/// Programs of one sort.
pub(super) struct Campaign {
    pub(super) name: &'static str,
    pub(super) is_mutated: bool,
    /// Whether the PEs are on nodes.
    pub(super) is_far: bool,
    /// How many are played unless said otherwise, and the seeds of others that have once failed.
    pub(super) programs: u64,
    pub(super) others: &'static [u64],
}

/// A number that the environment has.
fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// Says something at once, and where no test keeps it back: the program may be the last.
fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("somebody listens");
}

impl Campaign {
    pub(super) fn play(&self) {
        let (seed, programs) = (number("TEST_SEED"), number("TEST_PROGRAMS"));
        let says = programs.is_some();
        let mut others: &[u64] = &[];
        let seeds = match (seed, programs) {
            (None, None) => {
                others = self.others;
                0..self.programs
            }
            (Some(seed), None) => {
                say(&self.listing(seed));
                seed..seed + 1
            }
            (seed, Some(programs)) => {
                let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 16);
                say(&format!("{}: {programs} programs from seed {seed} on", self.name));
                seed..seed + programs
            }
        };
        let mut faults = Vec::new();
        for seed in seeds.chain(others.iter().copied()) {
            if says {
                say(&format!("{} {seed}", self.name));
            }
            if let Some(fault) = self.play_one(seed) {
                let text = format!("TEST_SEED={seed} {}: {fault}", self.name);
                if says {
                    say(&format!("FAULT {text}"));
                }
                faults.push(text);
            }
        }
        assert!(faults.is_empty(), "{} programs:\n{}", faults.len(), faults.join("\n"));
    }

    fn program(&self, seed: u64) -> Program {
        let program = generate::program(seed);
        if self.is_far { program.on_nodes() } else { program }
    }

    /// A program for people to read.
    fn listing(&self, seed: u64) -> String {
        let program = self.program(seed);
        let mut text = format!("{} program {seed}: {program}", self.name);
        if self.is_mutated {
            for mutation in mutations(&program) {
                text += &format!("{mutation}\n");
            }
        }
        text
    }

    /// Plays the program of a seed; what should not have come of it.
    fn play_one(&self, seed: u64) -> Option<Fault> {
        let title = format!("TEST_SEED={seed} {}", self.name);
        let is_mutated = self.is_mutated;
        let program = self.program(seed);
        let played = catch_unwind(AssertUnwindSafe(|| {
            alone(LIMIT, move || {
                let mutations = if is_mutated { mutations(&program) } else { Vec::new() };
                let role = |pe| Role::of(&program, pe, &mutations);
                let roles: Vec<_> = (0..program.pes).map(role).collect();
                let report = launch(&program, &roles, &title);
                judge(&program, &mutations, &roles, &report)
            })
        }));
        match played {
            Ok(fault) => fault,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
                // Threads that hang go on: nothing else can be played beside them.
                panic!("FAULT TEST_SEED={seed} {}: Hung: {text}", self.name)
            }
        }
    }
}
