//! The numbers of calls and steps are distinct, can be reused, and remain valid when they wrap
//! around.

use consort::{
    Error, Job, JobBuilder, Pe, Rank, Result, Team,
    bindings::JobBuilderExt as _,
    error::CallError,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_conformance::turns::{LIMIT, alone};
use consort_native::{Failure, SEQUENCE_BITS};

fn two() -> JobBuilder {
    Job::threads(2).without_wisdom()
}

/// The names of these lengths had the same 24-bit hash: data was cut off, or an assertion failed.
#[test]
fn lengths_with_equal_name_hashes_mismatch() {
    alone(LIMIT, || {
        for (algorithm, lengths) in [("flat", [1588, 3375]), ("direct", [750, 8224])] {
            let job = two().force(Collective::Broadcast, Candidate::new(algorithm)).run(|pe| {
                let mut data = vec![7_u8; lengths[pe.world().rank().index()]];
                pe.world().in_place(&mut data).broadcast(Rank(0))
            });
            match job {
                Err(Error::Mismatched(Failure::Mismatched { one, other, .. })) => {
                    let named = [one.1, other.1];
                    for (length, name) in lengths.iter().zip(&named) {
                        assert!(name.contains(&format!("({length} bytes of u8")), "{named:?}");
                    }
                }
                other => panic!("{algorithm}: {other:?}"),
            }
        }
    });
}

/// More different calls than there are numbers at a time, few of them held; each is correct.
#[test]
fn numbers_are_used_again() {
    alone(LIMIT, || {
        let job = two().run(|pe| {
            let world = pe.world();
            let mut data = vec![0_u8; 5_000];
            for len in 0..data.len() {
                let data = &mut data[..len];
                if let Some(last) = data.last_mut() {
                    *last = world.rank().0.try_into().unwrap_or(u8::MAX);
                }
                world.in_place(data).broadcast(Rank(1))?;
                assert!(data.last().is_none_or(|&last| last == 1));
            }
            Ok(())
        });
        job.expect("nothing fails");
    });
}

/// From here on, calls of all kinds cross the end of the sequence numbers.
fn close_to_the_end(before: u64) -> JobBuilder {
    two().first_step((1 << SEQUENCE_BITS) - before)
}

fn calls(world: &Team, count: usize) -> Result<()> {
    for number in 0..count {
        let value = number as u64;
        assert_eq!(world.all_reduce(value, Sum)?, 2 * value);
        assert_eq!(world.broadcast([value; 200], Rank(0))?, [value; 200]);
        let strict = world.with_sync(SyncModes::STRICT);
        assert_eq!(strict.reduce(value, Sum, Rank(1))?.unwrap_or(2 * value), 2 * value);
        let started = world.start(vec![value; 30]).all_gather()?;
        world.barrier()?;
        assert_eq!(started.wait()?, vec![value; 60]);
    }
    Ok(())
}

#[test]
fn results_are_right_past_the_end_of_sequence_numbers() {
    alone(LIMIT, || {
        for before in [1, 2, 3, 10, 50, 500] {
            let run = close_to_the_end(before).run(|pe| {
                calls(pe.world(), 300)?;
                let team = pe.world().split(Some(0), 0)?.expect("a colour");
                calls(&team, 100)?;
                team.free()
            });
            run.expect("nothing fails");
        }
    });
}

/// Returns the errors of jobs that make some correct calls and a wrong one near the end of the
/// sequence numbers. Each error has the number of steps before that end at which its job begins.
fn errors_past_the_end(
    wrong: impl Fn(&Team) -> Result<()> + Send + Sync + 'static,
) -> Vec<(u64, Error)> {
    alone(LIMIT, move || {
        let error = |before| {
            let program = |pe: &Pe| calls(pe.world(), 4).and_then(|()| wrong(pe.world()));
            (before, close_to_the_end(before).run(program).expect_err("a call is wrong"))
        };
        (1..40).step_by(3).map(error).collect()
    })
}

#[test]
fn early_leaver_is_reported_past_the_last_sequence_number() {
    let leaves = |world: &Team| match world.rank() {
        Rank(0) => world.broadcast([0_u64; 5], Rank(1)).map(drop),
        _ => Ok(()),
    };
    for (before, error) in errors_past_the_end(leaves) {
        let Error::Mismatched(Failure::Finished { rank, waiting, call, .. }) = error else {
            panic!("{before} steps before the end: {error}");
        };
        assert_eq!((rank, waiting), (Rank(1), Rank(0)));
        assert!(call.starts_with("broadcast(40 bytes"), "{call}");
    }
}

#[test]
fn mismatches_are_reported_by_name_past_the_end_of_sequence_numbers() {
    let differs = |world: &Team| match world.rank() {
        Rank(0) => world.barrier(),
        _ => world.all_reduce(1, Sum).map(drop),
    };
    for (before, error) in errors_past_the_end(differs) {
        let text = error.to_string();
        let names = ["PE 0 called barrier()", "PE 1 called all_reduce("];
        let named = names.iter().all(|name| text.contains(name));
        assert!(named, "{before} steps before the end: {text}");
    }
}

mod night {
    use super::*;

    #[test]
    fn job_out_of_call_numbers_recovers_when_plans_drop() {
        alone(LIMIT, || {
            let job = two().run(|pe| {
                let world = pe.world();
                world.barrier()?; // already planned, so it can be called when no number is left
                let mut plans = Vec::new();
                let most = loop {
                    match world.plan::<u8>(plans.len()).broadcast(Rank(0)) {
                        Ok(plan) => plans.push(plan),
                        Err(Error::Call(CallError::TooManyCallKinds { most })) => break most,
                        Err(error) => return Err(error),
                    }
                };
                assert!(plans.len() > 60_000, "{} plans of {most}", plans.len());
                world.barrier()?;
                let text = Error::Call(CallError::TooManyCallKinds { most }).to_string();
                assert!(text.contains("drop planned calls"), "{text}");
                drop(plans);
                world.barrier()?;
                assert_eq!(world.all_reduce(1, Sum)?, 2);
                assert_eq!(
                    world.plan::<u8>(70_000).broadcast(Rank(0))?.start(vec![3; 70_000])?.wait()?[9],
                    3
                );
                Ok(())
            });
            job.expect("nothing fails");
        });
    }
}
