//! Jobs whose processes end early: in each kind of wait, by a signal, an exit or a panic.

use std::{
    env, fs,
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use consort::{Error, Job, Pe, Rank, Result, Symmetric, ops::Sum, symmetric::Until};
use consort_conformance::data::Random;
use consort_sandbox::seeds::seeds;
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::launching::{Ended, start, start_with};

/// The time limit of a job whose PE has ended early, on a busy machine. In a job that hangs, the
/// processes are killed later.
const SOON: Duration = Duration::from_secs(30);

/// The wait of the other PEs when PE 1 ends.
const WAITS: [&str; 6] = ["barrier", "reduce", "slices", "word", "nonblocking", "finish"];

/// The ways in which it ends, the status of the job, and the report of the others and the launcher.
const ENDS: [(&str, i32, &str); 5] = [
    ("kill", 137, "PE 1 failed: it was killed by signal 9 (SIGKILL)"),
    ("exit", 1, "PE 1 failed: it exited with status 0 before the end of its program"),
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
                is_reported(&start(3, &[end, wait]).ended(), status, text)
            }));
        }
    }
    tests.push(Trial::test("early_ends::before_it_called_consort", || {
        is_reported(
            &start(3, &["never"]).ended(),
            1,
            "PE 1 failed: it exited with status 0 before it called Consort",
        )
    }));
    tests.push(Trial::test("early_ends::stopped_process_is_killed", || {
        let ended = start_with(3, Duration::from_secs(1), &["stopped"]).ended();
        ended.is(
            1,
            "PE 2 failed: it panicked: on purpose; PE 1 did not end by itself and was killed",
        )?;
        is_soon(ended.took)
    }));
    tests.push(Trial::test("early_ends::at_any_moment", kills));
    tests
}

/// Kills a process of a job at a random moment, again and again.
fn kills() -> Result<(), Failed> {
    for seed in seeds(15, 500, &[]) {
        let mut random = Random(seed << 32);
        let job = start(4, &["busy"]);
        let begun = Instant::now();
        let pes = loop {
            let pes: Vec<u32> = children(job.child.id()).into_iter().flat_map(children).collect();
            match pes[..] {
                [a, b, c, d] => break [a, b, c, d],
                _ if begun.elapsed() > SOON => return Err("its processes do not start".into()),
                _ => thread::yield_now(),
            }
        };
        thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        let victim = pes[random.below(4)];
        let pid = i32::try_from(victim).ok().and_then(Pid::from_raw).ok_or("no process")?;
        let killed = Instant::now();
        kill_process(pid, Signal::KILL)?;
        let ended = job.ended();
        ended
            .is(137, "was killed by signal 9 (SIGKILL)")
            .map_err(|failed| format!("seed {seed}: {}", failed.message().unwrap_or_default()))?;
        is_soon(killed.elapsed())?;
        if let Some(left) = pes.iter().find(|pe| Path::new(&format!("/proc/{pe}")).exists()) {
            return Err(format!("seed {seed}: process {left} is left").into());
        }
    }
    Ok(())
}

/// Returns the children of a process with one thread.
fn children(of: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Makes calls of many kinds, for a minute.
pub(crate) fn be_busy(pe: &Pe) -> Result<()> {
    let (world, begun) = (pe.world(), Instant::now());
    let mut data = vec![1.0; 100_000];
    while begun.elapsed() < Duration::from_secs(60) {
        world.barrier()?;
        world.all_reduce(1_u64, Sum)?;
        world.in_place(&mut data).all_reduce(Sum)?;
        let memory = world.symmetric::<u64>(1000)?;
        memory.fetch_add(Rank(0), 0, 1)?;
        let half = world.split(Some(world.rank().0 % 2), 0)?.expect("a half");
        half.broadcast(1_u8, Rank(0))?;
        half.free()?;
        world.start(vec![1_u32; 10_000]).all_reduce(Sum)?.wait()?;
    }
    Ok(())
}

/// Checks for a prompt end, this status, the reason in the last line, and a report to all PEs.
fn is_reported(ended: &Ended, status: i32, text: &str) -> Result<(), Failed> {
    ended.is(status, text)?;
    is_soon(ended.took)?;
    // A PE that panics gets the report, too.
    match ended.lines_with("reported: PE 1 failed") {
        2 | 3 => Ok(()),
        other => Err(format!("{other} PEs got the report").into()),
    }
}

fn is_soon(took: Duration) -> Result<(), Failed> {
    if took <= SOON { Ok(()) } else { Err(format!("it took {took:?}").into()) }
}

/// Runs the program of a process.
pub(crate) fn run(program: &[&str]) -> ExitCode {
    let &[end, ref wait @ ..] = program else { panic!("no program") };
    if end == "never" && env::var("CONSORT_RANK").as_deref() == Ok("1") {
        return ExitCode::SUCCESS;
    }
    let ended = Job::from_env(1).run(|pe| {
        match (end, pe.world().rank()) {
            ("busy", _) => return be_busy(pe),
            ("stopped", Rank(1)) => kill_process(getpid(), Signal::STOP).expect("a signal"),
            ("stopped", Rank(2)) => {
                thread::sleep(Duration::from_millis(50));
                panic!("on purpose")
            }
            _ => {}
        }
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
            println!("reported: {error}");
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

fn wait_in(pe: &Pe, word: &Symmetric<u64>, wait: &str) -> Result<()> {
    let world = pe.world();
    match wait {
        "barrier" => world.barrier(),
        "reduce" => world.all_reduce(1_u64, Sum).map(drop),
        "slices" => {
            let source = vec![1.0; 1 << 20];
            let mut target = vec![0.0; 1 << 20];
            world.slices(&source, &mut target).all_reduce(Sum)
        }
        "word" => word.wait_until(0, Until::Equals(1)).map(drop),
        "nonblocking" => {
            let request = world.start_barrier()?;
            request.wait()
        }
        _ => Ok(()),
    }
}
