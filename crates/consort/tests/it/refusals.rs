//! Jobs on a system that refuses a call, as sandboxes and containers do: they work, or name the
//! call.

#![cfg(target_os = "linux")]

use std::{env, process::Command};

use consort::{
    Job,
    bindings::{JobBuilderExt as _, Origin},
    ops::Sum,
};
use consort_sandbox::refusals::{CALLS, refuse};

/// The variable that tells a process of this test which call is refused, with which error, and
/// where the PEs have their memory.
const TASK: &str = "TEST_TASK";

/// Runs a job in which a call is refused, and returns how it ends.
fn job(task: &str) -> String {
    let [name, error, origin] = task.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{task} is not a task");
    };
    if let Err(error) = refuse(name, error == "EPERM") {
        return format!("no filter of system calls here: {error}");
    }
    let origin = if origin == "shared" { Origin::Shared } else { Origin::Private };
    let job = Job::threads(3).memory(origin).helper_threads().run(|pe| {
        let memory = pe.world().symmetric::<u64>(1000)?;
        memory.store(1, 7)?;
        pe.world().start(vec![1_u64]).all_reduce(Sum)?.wait()
    });
    match job {
        Ok(sums) if sums.iter().all(|sum| *sum == [3]) => "works".to_owned(),
        Ok(sums) => format!("wrong sums: {sums:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn job_works_or_names_a_refused_call_where_calls_can_be_filtered() {
    if let Ok(task) = env::var(TASK) {
        return println!("the job: {}", job(&task));
    }
    let mut named = Vec::new();
    for (name, _) in CALLS {
        for (error, said) in [("EPERM", "not permitted"), ("ENOSYS", "not implemented")] {
            for origin in ["private", "shared"] {
                let task = format!("{name} {error} {origin}");
                let mut program = Command::new(env::current_exe().expect("this program"));
                program.args([
                    "refusals::job_works_or_names_a_refused_call_where_calls_can_be_filtered",
                    "--exact",
                ]);
                let output = program.arg("--nocapture").env(TASK, &task).output();
                let output = output.expect("it starts");
                let text = String::from_utf8_lossy(&output.stdout);
                let end = text.lines().find_map(|line| line.split_once("the job: "));
                let (_, end) = end.unwrap_or_else(|| panic!("{task}: {output:?}"));
                if end.starts_with("no filter") {
                    return;
                }
                if end != "works" {
                    let is_named = end.contains(name) && end.to_lowercase().contains(said);
                    assert!(is_named, "{task}: {end}");
                    named.push(task);
                }
            }
        }
    }
    let expected = [
        "memfd_create EPERM shared",
        "memfd_create ENOSYS shared",
        "ftruncate EPERM shared",
        "ftruncate ENOSYS shared",
        "clone3 EPERM private",
        "clone3 EPERM shared",
    ];
    assert_eq!(named, expected);
}
