//! Jobs whose processes end early: in each kind of wait, by a signal, an exit or a panic.

use std::{env, process::ExitCode, thread, time::Duration};

use consort::{Error, Pe, Pes, Rank, Result, Sum, Symmetric, Until};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Signal, getpid, kill_process};

use crate::launching::{Ended, start};

/// The most that a job may take whose PE has ended early.
const SOON: Duration = Duration::from_secs(2);

/// In what the other PEs wait when PE 1 ends.
const WAITS: [&str; 6] = ["barrier", "reduce", "slices", "word", "nonblocking", "finish"];

/// The ways in which it ends, the status of the job, and what the others and the launcher say.
const ENDS: [(&str, i32, &str); 5] = [
    ("kill", 137, "PE 1 failed: it was killed by signal 9 (SIGKILL)"),
    ("exit", 1, "PE 1 failed: it exited with status 0 in the midst of its program"),
    ("exit3", 3, "PE 1 failed: it exited with status 3"),
    ("abort", 134, "PE 1 failed: it was killed by signal 6 (SIGABRT)"),
    ("panic", 1, "PE 1 failed: it panicked: on purpose"),
];

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests = Vec::new();
    for wait in WAITS {
        for (end, status, text) in ENDS {
            let name = format!("early_ends::{end}_in_{wait}");
            tests.push(Trial::test(name, move || {
                is_told(&start(3, &[], &[end, wait]).ended(), status, text)
            }));
        }
    }
    tests.push(Trial::test("early_ends::before_it_called_consort", || {
        is_told(
            &start(3, &[], &["never"]).ended(),
            1,
            "PE 1 failed: it exited with status 0 before it called Consort",
        )
    }));
    tests
}

/// The job has ended soon, with this status, and its last line says why; all other PEs were told.
fn is_told(ended: &Ended, status: i32, text: &str) -> Result<(), Failed> {
    ended.is(status, text)?;
    if ended.took > SOON {
        return Err(format!("it took {:?}", ended.took).into());
    }
    // A PE that panics is told itself.
    match ended.lines_with("told: PE 1 failed") {
        2 | 3 => Ok(()),
        other => Err(format!("{other} PEs were told").into()),
    }
}

/// What a process does.
pub(crate) fn run(program: &[&str]) -> ExitCode {
    let &[end, ref wait @ ..] = program else { panic!("no program") };
    if end == "never" && env::var("CONSORT_RANK").as_deref() == Ok("1") {
        return ExitCode::SUCCESS;
    }
    let ended = Pes::from_env(1).run(|pe| {
        let word = pe.world().symmetric(1)?;
        if pe.world().rank() == Rank(1) {
            thread::sleep(Duration::from_millis(50));
            end_by(end)
        }
        wait_in(pe, &word, wait.first().copied().unwrap_or("barrier"))
    });
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(error @ Error::PeFailed { rank: Rank(1), .. }) => {
            println!("told: {error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn end_by(end: &str) {
    match end {
        "kill" => kill_process(getpid(), Signal::KILL).expect("a signal to itself"),
        "exit" => std::process::exit(0),
        "exit3" => std::process::exit(3),
        "abort" => std::process::abort(),
        "panic" => panic!("on purpose"),
        _ => {}
    }
}

fn wait_in(pe: &Pe, word: &Symmetric<'_, u64>, wait: &str) -> Result<()> {
    let world = pe.world();
    match wait {
        "barrier" => world.barrier(),
        "reduce" => world.all_reduce(1_u64, Sum).map(drop),
        "slices" => {
            let source = vec![1.0; 1 << 20];
            let mut target = vec![0.0; 1 << 20];
            world.all_reduce_slice(&source, &mut target, Sum)
        }
        "word" => word.wait_until(0, Until::Equals(1)).map(drop),
        "nonblocking" => {
            let request = world.start_barrier()?;
            request.wait()
        }
        _ => Ok(()),
    }
}
