//! The suite on processes that an MPI has started, and the outcomes of programs that fail there. On
//! a machine without an MPI, the tests are listed as ignored.

use consort_sandbox as _;

#[path = "../it/public.rs"]
mod public;

use std::{
    env,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, Rank, Result,
    ops::Sum,
    tune::{Candidate, Collective},
};
use consort_fabric::{Capabilities, Nodes, Vendor};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::public::{play, programs};

/// The time limit of a job.
const LIMIT: Duration = Duration::from_secs(120);

/// Processes, PEs of each, the placement of the PEs, and the unit that shares memory. By machine,
/// all processes of a machine share memory. If there are several machines, the processes must be
/// dealt to them in turn or in blocks.
const SHAPES: [(u32, u32, &str, &str); 7] = [
    (2, 1, "blocks", "process"),
    (3, 1, "blocks", "process"),
    (2, 2, "blocks", "process"),
    (2, 2, "in-turn", "process"),
    (4, 1, "blocks", "machine"),
    (2, 2, "blocks", "machine"),
    (4, 2, "in-turn", "machine"),
];

/// The number of cases of a suite.
const CASES: usize = 100;

/// The number of processes, the way in which PE 1 ends, and the report to all. The mismatch has two
/// PEs, so that its report can name only one pair. The library's own messages are printed once.
const ENDS: [(u32, &str, &str); 10] = [
    (3, "panic", "PE 1 failed: it panicked: on purpose"),
    (3, "early", "PE 1 finished while PE "),
    (2, "mismatch", "calls do not match at call 1: PE 0 called barrier() "),
    (3, "exit", "process 1 exits before the end of its program"),
    (3, "between", "process 1 exits before the end of its program"),
    (3, "long", "PE 1 failed: it panicked: on purpose"),
    (
        2,
        "settings",
        "must be the same in all processes, but it differs: process 1 has 2097152, and ",
    ),
    (3, "memory", "process 1 could not get memory for a job of 3 PEs with symmetric heaps of "),
    (3, "vendor", "consort: PE 1 failed: it panicked: on purpose"),
    (2, "nested", "this process already runs a job, and an MPI supports one at a time"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [program, rest @ ..] = &arguments[..]
        && is_pe()
    {
        return run(program, rest);
    }
    let is_here = ["mpirun", "mpicc"].into_iter().all(is_installed);
    let suites = SHAPES.into_iter().map(|(processes, each, placement, sharing)| {
        let name = format!("suite::{processes}_processes_of_{each}_{placement}_by_{sharing}");
        Trial::test(name, move || {
            let shape = [processes.to_string(), each.to_string()];
            let program = ["suite", &shape[0], &shape[1], placement, sharing];
            start(processes, each, [placement, sharing], &program, "")
        })
    });
    let ends = ["process", "machine"].into_iter().flat_map(|sharing| {
        // Processes that share memory do not use the MPI's collectives.
        let ends = ENDS.into_iter().filter(move |one| one.1 != "vendor" || sharing == "process");
        ends.map(move |(processes, end, text)| {
            Trial::test(format!("ends::{end}_by_{sharing}"), move || {
                start(processes, 1, ["blocks", sharing], &["end", end], text)
            })
        })
    });
    let tests = suites.chain(ends).map(|test| test.with_ignored_flag(!is_here)).collect();
    // Jobs of many processes would slow each other down.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Returns whether an MPI has started this process.
fn is_pe() -> bool {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().any(|name| env::var_os(name).is_some())
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs this program as PEs of an MPI. It succeeds, or fails with `text`.
fn start(
    processes: u32,
    each: u32,
    [placement, sharing]: [&str; 2],
    program: &[&str],
    text: &str,
) -> Result<(), Failed> {
    let mut command = Command::new("mpirun");
    let is_open =
        String::from_utf8_lossy(&Command::new("mpirun").arg("--version").output()?.stdout)
            .contains("Open MPI");
    if is_open {
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &processes.to_string()]).arg(env::current_exe()?).args(program);
    command.env("CONSORT_PES_PER_PROCESS", each.to_string()).env("CONSORT_PLACEMENT", placement);
    command.env("CONSORT_SHARING", sharing);
    let begun = Instant::now();
    let waits = thread::spawn(move || command.output());
    while !waits.is_finished() {
        if begun.elapsed() > LIMIT {
            return Err(format!("no end within {LIMIT:?}").into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let output = waits.join().map_err(|_| "no output")??;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let is_as_it_should = output.status.success() == text.is_empty();
    let times = said.concat().matches(text).count();
    let is_ours = text.starts_with("consort: ");
    if is_as_it_should && times > 0 && (times == 1 || !is_ours) {
        return Ok(());
    }
    Err(format!("{:?} instead of `{text}`:\n{}", output.status.code(), said.concat()).into())
}

/// Runs the program of a process.
fn run(program: &str, rest: &[String]) -> ExitCode {
    let ended = match (program, rest) {
        ("suite", [processes, each, placement, sharing]) => {
            let number = |text: &String| text.parse::<u32>().expect("a number");
            let by_process = match &placement[..] {
                "blocks" => Nodes::Blocks(number(each)),
                _ => Nodes::InTurn(number(processes)),
            };
            // The number of machines is not known here: use what serves on any number.
            let nodes = if sharing == "process" { by_process } else { Nodes::One };
            suite(number(processes), number(each), nodes)
        }
        ("end", [end]) => end_by(end),
        _ => panic!("no program"),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reported: {error}");
            ExitCode::FAILURE
        }
    }
}

fn suite(processes: u32, each: u32, nodes: Nodes) -> Result<()> {
    let pes = processes * each;
    // The MPI's own collectives are between all processes.
    let vendor = Vendor { team: nodes == Nodes::Blocks(1), leaders: nodes != Nodes::One };
    let able = Capabilities { vendor, ..consort_native::Job::capabilities_between(pes, nodes) };
    let programs = programs(pes, able, CASES);
    let played = play(Job::from_env(1), &programs, 0..programs.len() as u64)?;
    assert_eq!(played.len(), each as usize, "{played:?}");
    assert!(played.iter().all(|&played| played == programs.len()), "{played:?}");
    Ok(())
}

/// Returns the number of this process.
fn rank() -> Option<u32> {
    let mut ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].into_iter();
    ranks.find_map(|name| env::var(name).ok())?.parse().ok()
}

/// One process has less memory than a heap needs.
fn end_by_memory() -> Result<()> {
    if rank() == Some(1) {
        let limit = Some(4 << 30);
        setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).expect("a limit");
    }
    Job::from_env(1).heap_bytes(8 << 30).run(|pe| pe.world().barrier()).map(drop)
}

/// A PE fails while the others are in one of the MPI's collectives.
fn end_by_vendor() -> Result<()> {
    let ended = Job::from_env(1).force(Collective::AllReduce, Candidate::new("vendor")).run(|pe| {
        let world = pe.world();
        for call in 0..10 {
            assert!((world.rank(), call) != (Rank(1), 7), "on purpose");
            world.all_reduce(1_u32, Sum)?;
        }
        Ok(())
    });
    ended.map(drop)
}

/// One process has a larger heap.
fn end_by_settings() -> Result<()> {
    let bytes = if rank() == Some(0) { 1 << 20 } else { 2 << 20 };
    Job::from_env(1).heap_bytes(bytes).run(|pe| pe.world().barrier()).map(drop)
}

/// A PE fails while long data moves.
fn end_by_long() -> Result<()> {
    let ended = Job::from_env(1).force(Collective::Broadcast, Candidate::new("direct")).run(|pe| {
        let world = pe.world();
        let mut data = vec![1_u64; 1 << 20];
        for call in 0..10 {
            assert!((world.rank(), call) != (Rank(1), 7), "on purpose");
            world.in_place(&mut data).broadcast(Rank(call % 3))?;
        }
        Ok(())
    });
    ended.map(drop)
}

/// A PE begins another job.
fn end_by_nested() -> Result<()> {
    let again = || Job::from_env(1).run(|pe| pe.world().barrier()).map(drop);
    Job::from_env(1).run(|_| again()).map(drop)
}

/// A process ends while the others begin another job.
fn end_by_between() -> Result<()> {
    let job = || Job::from_env(1).run(|pe| pe.world().barrier()).map(drop);
    job()?;
    if rank() == Some(1) { Ok(()) } else { job() }
}

fn end_by(end: &str) -> Result<()> {
    match end {
        "settings" => return end_by_settings(),
        "memory" => return end_by_memory(),
        "vendor" => return end_by_vendor(),
        "long" => return end_by_long(),
        "nested" => return end_by_nested(),
        "between" => return end_by_between(),
        _ => {}
    }
    let ended = Job::from_env(1).run(|pe| {
        let world = pe.world();
        world.barrier()?;
        if world.rank() == Rank(1) {
            match end {
                "panic" => panic!("on purpose"),
                "early" => return Ok(()),
                "mismatch" => drop(world.all_reduce(1_u32, Sum)?),
                _ => std::process::exit(3),
            }
        }
        world.barrier()
    });
    assert!(!matches!(ended, Err(Error::JobFailed)), "all know why");
    ended.map(drop)
}
