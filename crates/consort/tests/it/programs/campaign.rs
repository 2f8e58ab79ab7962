//! Many programs one after the other, with a time limit for each.

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

/// The time limit of a program. The slowest mutation takes 700 ms.
const LIMIT: Duration = Duration::from_secs(20);

/// Programs of one kind.
pub(super) struct Campaign {
    pub(super) name: &'static str,
    pub(super) is_mutated: bool,
    /// Whether the PEs are on nodes.
    pub(super) is_far: bool,
    /// The number of programs for a change, and for a nightly run.
    pub(super) programs: [u64; 2],
    /// Seeds that once found a fault.
    pub(super) once_failed: &'static [u64],
}

/// Writes a line immediately and uncaptured, because the program may be the last.
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

    /// Returns a program as text for people.
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

    /// Runs the program of a seed, and returns its fault, if any.
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
                // Hanging threads continue: nothing else can run next to them.
                panic!("FAULT TEST_SEED={seed} {}: Hung: {text}", self.name)
            }
        }
    }
}
