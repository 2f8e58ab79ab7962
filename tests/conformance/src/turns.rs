//! Runs one job at a time, each with a time limit.
//!
//! Jobs of many PEs that share the cores with jobs whose times are tested would spoil those, and a
//! job that hangs must only fail its own test.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

/// A job that takes longer hangs. On a machine with four times as many busy threads as cores, some
/// jobs took more than a minute.
pub const LIMIT: Duration = Duration::from_secs(300);

static TURN: Mutex<()> = Mutex::new(());
static NOTE: Mutex<String> = Mutex::new(String::new());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the current work, for the report if it does not end.
pub fn note(text: String) {
    *lock(&NOTE) = text;
}

/// Runs `job` while no other runs.
///
/// # Panics
/// When the job panics, or when it does not end within `limit`.
pub fn alone<R: Send + 'static>(limit: Duration, job: impl FnOnce() -> R + Send + 'static) -> R {
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    run(limit, Box::new(move || *place.lock().expect("one job has it") = Some(job())));
    let result = result.lock().expect("the job has ended").take();
    result.expect("the result of a job that has ended")
}

/// As [`alone`]: compiled once for all jobs.
fn run(limit: Duration, job: Box<dyn FnOnce() + Send>) {
    let _turn = lock(&TURN);
    note(String::new());
    let (done, end) = mpsc::channel();
    thread::spawn(move || done.send(catch_unwind(AssertUnwindSafe(job))).is_ok());
    match end.recv_timeout(limit) {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("no end within {limit:?}: {}", lock(&NOTE)),
    }
}

#[test]
#[should_panic(expected = "no end within")]
fn a_job_that_hangs_fails_its_test() {
    let (_held, end) = mpsc::channel::<()>();
    alone(Duration::from_millis(1), move || end.recv().is_ok());
}
