//! Errors state which PE has failed, whether the job has failed, and which environment variable has
//! an invalid value.

use std::{env, process::Command, sync::Mutex, thread, time::Duration};

use consort::{
    Barrier, Error, Job, Rank, Result,
    error::{CallError, Failure, HeapError, LaunchError, Members},
};
use consort_conformance::turns::{LIMIT, alone};

use crate::jobs::{fails, on};

/// Set in the process whose variables cannot be used.
const TASK: &str = "TEST_TASK";

#[test]
fn pe_that_panicked_is_named() {
    let error = fails(3, |world| {
        assert_ne!(world.rank(), Rank(2), "on purpose");
        world.barrier()
    });
    let (rank, reason) = error.failed_pe().expect("a PE panicked");
    assert_eq!(rank, Rank(2));
    assert!(reason.contains("panicked") && reason.contains("on purpose"), "{reason}");
    assert!(error.is_fatal());
}

/// The launch returns the program's own error, and the other PEs get the name of the PE.
#[test]
fn pe_whose_program_returned_an_error_is_named_to_the_others() {
    let (ended, others) = alone(LIMIT, || {
        let others = Mutex::new(Vec::new());
        let ended = Job::threads(3).run(|pe| {
            if pe.world().rank() == Rank(1) {
                return Err(Error::Call(CallError::Taken));
            }
            let error = pe.world().barrier().expect_err("PE 1 makes no call");
            others.lock().expect("no panic").push(error.clone());
            Err::<(), _>(error)
        });
        (ended, others.into_inner().expect("no panic"))
    });
    let error = ended.expect_err("a program returned an error");
    assert_eq!(error, Error::Call(CallError::Taken));
    assert!(error.failed_pe().is_none() && !error.is_fatal());
    assert_eq!(others.len(), 2);
    for error in others {
        let (rank, reason) = error.failed_pe().expect("PE 1's program failed");
        assert_eq!(rank, Rank(1));
        assert!(reason.contains(&CallError::Taken.to_string()), "{reason}");
        assert!(error.is_fatal());
    }
}

/// The call's time limit ends while PE 2 sleeps, so the other PEs name it.
#[test]
fn late_pe_is_named() {
    let error = alone(LIMIT, || {
        let ended = Job::threads(3).run(|pe| {
            let world = pe.world();
            world.barrier()?;
            if world.rank() == Rank(2) {
                thread::sleep(Duration::from_millis(800));
            }
            pe.with_timeout(Duration::from_millis(200), || world.barrier())
        });
        ended.expect_err("PE 2 is late")
    });
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    let late = error.failure().and_then(Failure::absent_pes);
    assert_eq!(late, Some(&Members { first: vec![Rank(2)], size: 1 }), "{error}");
}

#[test]
fn missing_pes_are_named() {
    let barrier = Barrier::new(3).join_timeout(Duration::from_millis(50));
    let error = barrier.join().expect("room").wait().expect_err("nobody else joins");
    let missing = error.failure().and_then(Failure::absent_pes);
    assert_eq!(missing, Some(&Members { first: vec![Rank(1), Rank(2)], size: 2 }), "{error}");
}

#[test]
fn mismatch_has_a_failure_without_absent_pes() {
    let error = fails(2, |world| match world.rank() {
        Rank(0) => world.barrier(),
        _ => world.broadcast(7, Rank(0)).map(drop),
    });
    let failure = error.failure().expect("the calls do not match");
    assert!(matches!(failure, Failure::Mismatched { .. }), "{error}");
    assert_eq!(failure.absent_pes(), None, "{error}");
    assert_eq!(Error::Forked.failure(), None);
}

#[test]
fn errors_of_a_failed_job_are_fatal() {
    let mismatched = fails(2, |world| match world.rank() {
        Rank(0) => world.barrier(),
        _ => world.broadcast(7, Rank(0)).map(drop),
    });
    assert!(matches!(mismatched, Error::Mismatched(_)), "{mismatched}");
    let barrier = Barrier::new(2).join_timeout(Duration::from_millis(50));
    let alone = barrier.join().expect("room").wait().expect_err("nobody else joins");
    assert!(matches!(alone, Error::TimedOut(Failure::Missing { .. })), "{alone}");
    for error in [mismatched, alone, Error::Forked, Error::JobFailed] {
        assert!(error.is_fatal(), "{error}");
        assert_eq!(error.failed_pe(), None, "{error}");
    }
}

#[test]
fn errors_of_one_call_are_not_fatal() {
    let refused = on(Job::threads(2).heap_bytes(4096), |world| {
        let errors = [
            world.broadcast(1, Rank(2)).err(),
            world.cartesian(3).err(),
            world.symmetric::<u64>(1 << 20).err(),
        ];
        world.barrier()?; // the job goes on
        Ok(errors)
    });
    for errors in refused {
        let [root, rows, memory] = errors.map(|error| error.expect("it is refused"));
        assert!(matches!(root, Error::Call(CallError::RootOutOfRange { .. })), "{root}");
        assert!(matches!(rows, Error::Call(CallError::Team(_))), "{rows}");
        assert!(matches!(memory, Error::Memory(HeapError::Exhausted { .. })), "{memory}");
        let others = [LaunchError::NoPes.into(), Error::Wisdom("no wisdom".to_owned())];
        for error in [root, rows, memory].into_iter().chain(others) {
            assert!(!error.is_fatal(), "{error}");
            assert_eq!(error.failed_pe(), None, "{error}");
        }
    }
}

/// Asserts that `variable`, with a value that cannot be used, is the reason why `launch` fails.
/// Runs the test of this name again, in a process with that value.
fn is_named(
    test: &str,
    (variable, value): (&str, &str),
    expected: &str,
    launch: impl Fn() -> Result<()>,
) {
    if env::var_os(TASK).is_some() {
        let error = launch().expect_err("the value cannot be used");
        assert!(!error.is_fatal() && error.failed_pe().is_none(), "{error}");
        let text = error.to_string();
        let Error::Config(error) = error else { panic!("{error}") };
        assert_eq!((error.variable(), error.value()), (variable, value));
        assert_eq!(error.expected(), expected);
        assert_eq!(text, format!("{variable} is `{value}`: use {expected}"));
        return;
    }
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args([&format!("errors::{test}"), "--exact", "--nocapture"]);
    program.env(TASK, "yes").env(variable, value);
    let output = program.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn wrong_variable_is_named_with_its_value() {
    let test = "wrong_variable_is_named_with_its_value";
    let wrong = ("CONSORT_SEGMENT", "elsewhere");
    is_named(test, wrong, "private or shared", || Job::threads(2).run(|_| Ok(())).map(drop));
}

#[test]
fn wrong_variable_of_the_launcher_is_named_with_its_value() {
    let test = "wrong_variable_of_the_launcher_is_named_with_its_value";
    let expected = "the value that `consort run` sets, or unset it to run the program alone";
    let wrong = ("CONSORT_LAUNCH", "PE 3 of 4");
    is_named(test, wrong, expected, || Job::from_env(2).run(|_| Ok(())).map(drop));
}
