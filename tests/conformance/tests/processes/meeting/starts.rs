//! The ways in which processes that meet are started, and what they then do.

use std::{
    env, fs, io,
    process::{self, Command},
};

use consort_sandbox::seeds;
use libtest_mimic::{Failed, Trial};

use super::running::{
    Ended, INHERITED, LONG, Running, all_work, command, new_address, new_name, new_places, spawn,
    start, start_all, start_all_at,
};
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
        Trial::test("meeting::processes_that_inherit_a_file", processes_that_inherit_a_file),
        Trial::test("meeting::processes_that_know_an_address", processes_that_know_an_address),
        Trial::test("meeting::processes_that_exchange_files", processes_that_exchange_files),
        Trial::test("meeting::place_is_free_after_each_job", place_is_free_after_each_job),
        Trial::test(
            "meeting::place_is_free_while_a_child_lives",
            place_is_free_while_a_child_lives,
        ),
        Trial::test("meeting::forked_child_is_not_a_pe", forked_child_is_not_a_pe),
        Trial::test("meeting::threads_join", threads_join),
        Trial::test("meeting::processes_of_torchrun", processes_of_torchrun),
        Trial::test("meeting::processes_of_srun", processes_of_srun),
        Trial::test("meeting::processes_of_several_machines", processes_of_several_machines),
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

/// The processes have the same pipe: their parent forks them, or starts programs.
fn processes_that_inherit_a_file() -> Result<(), Failed> {
    let forking = start("-", [0, 3], LONG, &["forks", "pipe"]);
    all_work(&[forking.ended()], "sum 3")?;
    let pipes = [io::pipe()?, io::pipe()?];
    // The processes of two jobs at the same time.
    let start = |number: u32| {
        let mut command = command(INHERITED, [number / 2, 3], LONG, &["sums"]);
        let (end, _) = &pipes[number as usize % 2];
        command.stdin(end.try_clone()?);
        Ok(spawn(command))
    };
    let all = (0..6).map(start).collect::<io::Result<Vec<Running>>>()?;
    let all: Vec<Ended> = all.into_iter().map(Running::ended).collect();
    all_work(&all, "sum 3")
}

fn processes_that_know_an_address() -> Result<(), Failed> {
    all_work(&start_all_at(&new_address(), 3, &["sums"]), "sum 3")
}

/// The program's own exchange: each process writes files, and reads those of all.
fn processes_that_exchange_files() -> Result<(), Failed> {
    let folder = env::temp_dir().join(new_name());
    fs::create_dir(&folder)?;
    let all = start_all(3, &["files", folder.to_str().ok_or("a name")?]);
    fs::remove_dir_all(folder)?;
    all_work(&all, "sum 3")
}

fn place_is_free_after_each_job() -> Result<(), Failed> {
    let places = new_places();
    places.iter().try_for_each(|place| all_work(&start_all_at(place, 3, &["again", "30"]), "done"))
}

fn place_is_free_while_a_child_lives() -> Result<(), Failed> {
    let all = new_places().map(|place| start(&place, [0, 1], LONG, &["leaves"]).ended());
    all_work(&all, "done")
}

fn forked_child_is_not_a_pe() -> Result<(), Failed> {
    all_work(&start_all(2, &["child"]), "done")
}

fn threads_join() -> Result<(), Failed> {
    all_work(&start_all(2, &["joins"]), "sum 1")
}

/// Runs three processes with variables of a launcher: these, and their ranks.
fn start_by(rank: &str, variables: &[(&str, &str)]) -> Vec<Ended> {
    let start = |own: u32| {
        let mut command = command("-", [0, 1], LONG, &["environment"]);
        command.envs(variables.iter().copied()).env(rank, own.to_string());
        spawn(command)
    };
    let all: Vec<Running> = (0..3).map(start).collect();
    all.into_iter().map(Running::ended).collect()
}

fn processes_of_torchrun() -> Result<(), Failed> {
    let port = process::id().to_string();
    let mut variables =
        vec![("WORLD_SIZE", "3"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", &*port)];
    all_work(&start_by("RANK", &variables), "sum [3]")?;
    // Each of them alone is a job of threads.
    variables[0].1 = "1";
    all_work(&start_by("ANYTHING", &[&variables[..], &[("RANK", "0")]].concat()), "sum [0]")
}

fn processes_of_srun() -> Result<(), Failed> {
    let job = process::id().to_string();
    let variables = [
        ("SLURM_STEP_NUM_TASKS", "3"),
        ("SLURM_STEP_NUM_NODES", "1"),
        ("SLURM_JOB_ID", &*job),
        ("SLURM_STEP_ID", "0"),
    ];
    all_work(&start_by("SLURM_PROCID", &variables), "sum [3]")
}

fn processes_of_several_machines() -> Result<(), Failed> {
    let variables = [
        ("SLURM_STEP_NUM_TASKS", "3"),
        ("SLURM_STEP_NUM_NODES", "2"),
        ("SLURM_JOB_ID", "1"),
        ("SLURM_STEP_ID", "0"),
    ];
    let all = start_by("SLURM_PROCID", &variables);
    let words = ["`srun` has started", "on several machines", "by the `mpirun` of an MPI"];
    all.iter().try_for_each(|ended| ended.fails(&words))
}
