//! Many programs one after the other, with a limit of time for each.

use std::{
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use consort_conformance::turns::alone;
use consort_sandbox::seeds::{PROGRAMS, SEED, number, seeds};

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
    /// The number of programs for a change, and for a night.
    pub(super) programs: [u64; 2],
    /// Seeds that found a fault once.
    pub(super) once_failed: &'static [u64],
}

/// Says something at once, and where no test keeps it back: the program may be the last.
fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("somebody listens");
}

impl Campaign {
    pub(super) fn play(&self) {
        let says = number(PROGRAMS).is_some();
        if let (Some(seed), false) = (number(SEED), says) {
            say(&self.listing(seed));
        }
        let [change, night] = self.programs;
        let mut faults = Vec::new();
        for seed in seeds(change, night, self.once_failed) {
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
