//! A forked child of a PE is not a PE: it ends by itself, and the job continues.

use std::process::ExitCode;

use consort::{Error, Job, ops::Sum};
use consort_sandbox::children;
use libtest_mimic::Trial;

use crate::launching::start;

pub(crate) fn tests() -> Vec<Trial> {
    let test = |pes: u32| {
        Trial::test(format!("forks::{pes}"), move || start(pes, &["forks"]).ended().is(0, ""))
    };
    [1, 3].map(test).into()
}

/// Runs a process: children end at once, or after the whole program.
pub(crate) fn run() -> ExitCode {
    let launch = || {
        Job::from_env(1).run(|pe| {
            let world = pe.world();
            let memory = world.symmetric::<u64>(1)?;
            let child = children::fork();
            if child == 0 {
                let refused = [memory.put(world.right(), 0, &[9]), world.barrier()];
                let are_refused = refused.iter().all(|one| *one == Err(Error::Forked));
                children::end(are_refused);
            }
            children::wait("a child of a PE", child);
            world.barrier()?;
            let (sum, before) = (world.all_reduce(1, Sum)?, memory.load(0)?);
            assert_eq!((sum, before), (world.size(), 0));
            let child = children::fork();
            if child != 0 {
                children::wait("a child of a PE", child);
            }
            Ok(child == 0)
        })
    };
    for _ in 0..3 {
        match launch() {
            Ok(results) => assert!(results.iter().all(|is_child| !is_child)),
            Err(error) => {
                let again = Job::from_env(1).run(|_| Ok(())).expect_err("a child is not a PE");
                let own = Job::threads(2).run(|pe| pe.world().all_reduce(1, Sum));
                let is_well = error == Error::Forked
                    && again.to_string().contains("was forked from PE")
                    && own.is_ok_and(|own| own == [2, 2]);
                children::end(is_well);
            }
        }
    }
    ExitCode::SUCCESS
}
