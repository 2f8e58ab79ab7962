//! PEs that finish while others still need them.

use std::time::Instant;

use consort::{
    Error, Job, Rank, Waiting, symmetric::Until, sync_modes::SyncModes, tune::Collective,
};
use consort_conformance::{
    registry::one_each_on_slices,
    turns::{LIMIT, alone, note},
};
use consort_native::Failure;

use super::{call, call_on, few_and_many_words};
use crate::jobs::SOON;

/// A PE that has finished is named by any call that cannot end without it.
#[test]
fn a_pe_that_finishes_early_is_named() {
    alone(LIMIT, || {
        for collective in Collective::EVERY {
            for candidate in one_each_on_slices(collective) {
                let [_, words] = few_and_many_words(collective, &candidate, 4);
                for quitter in (0..4).map(Rank) {
                    note(format!("{collective} by {candidate}, PE {quitter} finishes"));
                    let since = Instant::now();
                    let pes = Job::threads(4).force(collective, candidate.clone());
                    let outcome = pes.run(|pe| {
                        let world = pe.world();
                        call(world, collective, words, SyncModes::MINE)?;
                        if world.rank() == quitter {
                            return Ok(());
                        }
                        call_on(|| call(world, collective, words, SyncModes::MINE))
                    });
                    let Err(Error::Mismatched(Failure::Finished { rank, waiting, call, .. })) =
                        &outcome
                    else {
                        panic!("{outcome:?}");
                    };
                    assert!(*rank == quitter && *waiting != quitter);
                    assert!(call.starts_with(collective.name()), "{call}");
                    let text = outcome.expect_err("an error").to_string();
                    assert!(text.contains(&format!("PE {quitter} finished")), "{text}");
                    assert!(since.elapsed() < SOON);
                }
            }
        }
    });
}

/// No PE is left that could change the word for which a PE waits.
#[test]
fn wait_that_no_pe_can_end_fails() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            let since = Instant::now();
            let outcome = Job::threads(3).waiting(waiting).run(|pe| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                if world.rank() == Rank(1) {
                    word.wait_until(0, Until::Equals(1))?;
                }
                Ok(())
            });
            let named = matches!(&outcome, Err(Error::Mismatched(Failure::Finished {
                waiting, ..
            })) if *waiting == Rank(1));
            assert!(named, "{outcome:?}");
            assert!(since.elapsed() < SOON);
        }
    });
}
