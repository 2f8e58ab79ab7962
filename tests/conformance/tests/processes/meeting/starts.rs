//! The ways in which processes that meet are started, and what they then do.

use std::{env, fs, process::Command};

use consort_sandbox::seeds;
use libtest_mimic::{Failed, Trial};

use super::running::{LONG, all_work, new_name, start, start_all};
use crate::public::programs;

/// The suite by numbers of PEs, with numbers of cases.
const SUITE: [(u32, usize); 3] = [(1, 200), (2, 4_000), (4, 1_200)];

pub(super) fn tests() -> Vec<Trial> {
    let suite = SUITE.into_iter().map(|(pes, count)| {
        Trial::test(format!("meeting::suite::{pes}"), move || {
            let programs = programs(pes, consort_native::Job::capabilities_of(pes), count).len();
            let seeds = seeds::of_programs(programs as u64);
            let arguments = [count as u64, seeds.start, seeds.end].map(|one| one.to_string());
            let [count, first, end] = arguments.each_ref();
            all_work(&start_all(pes, &["suite", count, first, end]), "played")
        })
    });
    let others = [
        Trial::test("meeting::processes_of_a_shell", processes_of_a_shell),
        Trial::test("meeting::processes_of_fork", processes_of_fork),
        Trial::test("meeting::processes_that_exchange_files", processes_that_exchange_files),
        Trial::test("meeting::name_is_free_after_each_job", name_is_free_after_each_job),
        Trial::test("meeting::name_is_free_while_a_child_lives", name_is_free_while_a_child_lives),
        Trial::test("meeting::forked_child_is_no_pe", forked_child_is_no_pe),
        Trial::test("meeting::threads_join", threads_join),
    ];
    suite.chain(others).collect()
}

fn processes_of_a_shell() -> Result<(), Failed> {
    let name = new_name();
    let script = "for rank in 0 1 2; do \"$0\" meets $rank 3 \"$1\" 60000 sums & done; wait";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(env::current_exe()?).arg(&name);
    let output = shell.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.matches("sum 3\n").count() {
        3 => Ok(()),
        _ => Err(format!("{output:?}").into()),
    }
}

/// A process forks the others, which have its memory but not yet a job.
fn processes_of_fork() -> Result<(), Failed> {
    let forking = start(&new_name(), [0, 3], LONG, &["forks"]);
    all_work(&[forking.ended()], "sum 3")
}

/// The program's own exchange: each process writes files, and reads those of all.
fn processes_that_exchange_files() -> Result<(), Failed> {
    let folder = env::temp_dir().join(new_name());
    fs::create_dir(&folder)?;
    let all = start_all(3, &["files", folder.to_str().ok_or("a name")?]);
    fs::remove_dir_all(folder)?;
    all_work(&all, "sum 3")
}

fn name_is_free_after_each_job() -> Result<(), Failed> {
    all_work(&start_all(3, &["again", "30"]), "done")
}

fn name_is_free_while_a_child_lives() -> Result<(), Failed> {
    all_work(&[start(&new_name(), [0, 1], LONG, &["leaves"]).ended()], "done")
}

fn forked_child_is_no_pe() -> Result<(), Failed> {
    all_work(&start_all(2, &["child"]), "done")
}

fn threads_join() -> Result<(), Failed> {
    all_work(&start_all(2, &["joins"]), "sum 1")
}
