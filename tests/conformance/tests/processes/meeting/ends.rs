//! Processes that end early: the others get an error soon, and nothing is left behind.

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use consort_conformance::data::Random;
use consort_sandbox::seeds::seeds;
use libtest_mimic::{Failed, Trial};

use super::running::{
    Ended, LONG, MEETS, Running, SHORT, SOON, all_work, is_taken, new_name, new_places, start,
    start_all, wait_until_taken,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![
        Trial::test("meeting::kill_at_any_moment", kills),
        Trial::test("meeting::exit_in_the_program", ends),
        Trial::test("meeting::stale_place", stale_place),
        Trial::test("meeting::process_without_memory", process_without_memory),
        Trial::test("meeting::process_that_cannot_begin", process_that_cannot_begin),
        Trial::test("meeting::process_that_can_open_no_file", process_that_can_open_no_file),
        Trial::test("meeting::handlers_run_on_threads_of_the_program", handlers_run_elsewhere),
    ]
}

/// Kills a process at a random moment, before or after all have begun, again and again.
fn kills() -> Result<(), Failed> {
    for seed in seeds(20, 500, &[]) {
        let mut random = Random(seed << 32);
        let (name, has_begun) = (new_name(), random.below(2) == 0);
        let limit = if has_begun { LONG } else { SHORT };
        let mut all: Vec<Running> =
            (0..4).map(|rank| start(&name, [rank, 4], limit, &["busy"])).collect();
        if has_begun {
            all.iter_mut().for_each(|one| one.prints(b'b'));
        }
        thread::sleep(Duration::from_micros(random.below(30_000) as u64));
        let victim = random.below(4);
        all[victim].kill();
        let killed = Instant::now();
        let mut words = vec![];
        let reported = format!("PE {victim} failed: it ended before the end of its program");
        if has_begun {
            words.push(&*reported);
        }
        for (rank, one) in all.into_iter().enumerate() {
            let mut ended = one.ended();
            ended.took = killed.elapsed();
            if rank != victim {
                ended.fails(&words).map_err(|failed| {
                    format!("seed {seed}: {}", failed.message().unwrap_or_default())
                })?;
            }
        }
        let (took, left) = (killed.elapsed(), left_of(&name));
        if took > SOON || !left.is_empty() || is_taken(&name) {
            return Err(format!("seed {seed}: after {took:?}, left: {left:?}").into());
        }
    }
    Ok(())
}

/// Returns files of a job in the places where programs leave shared memory and sockets.
fn left_of(name: &str) -> Vec<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let all = [Some("/dev/shm".into()), Some("/run".into()), Some(env::temp_dir()), runtime];
    let files = all.into_iter().flatten().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    let is_of_it = |file: &PathBuf| {
        let file = file.to_string_lossy();
        file.contains(name) || file.rsplit('/').next().is_some_and(|file| file.contains("consort"))
    };
    files.filter(is_of_it).collect()
}

/// A process that exits in the middle of its program has failed too.
fn ends() -> Result<(), Failed> {
    let mut all = start_all(3, &["ends"]);
    all.remove(1);
    let words = ["PE 1 failed: it ended before the end of its program"];
    all.iter().try_for_each(|ended| ended.fails(&words))
}

/// The process that has a place is killed, while it waits for others, and in a complete job.
fn stale_place() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| kill_at(place))
}

fn kill_at(place: &str) -> Result<(), Failed> {
    let first = start(place, [0, 2], LONG, &["sums"]);
    wait_until_taken(place);
    first.kill();
    first.ended();
    let mut all: Vec<Running> =
        (0..2).map(|rank| start(place, [rank, 2], LONG, &["waits"])).collect();
    all.iter_mut().for_each(|one| one.prints(b'w'));
    all.iter().for_each(Running::kill);
    all.into_iter().map(Running::ended).for_each(drop);
    let all: Vec<Running> = (0..2).map(|rank| start(place, [rank, 2], LONG, &["sums"])).collect();
    let all: Vec<Ended> = all.into_iter().map(Running::ended).collect();
    all_work(&all, "sum 1")
}

/// A process that cannot begin fails the job of the others, although it runs on.
fn process_without_memory() -> Result<(), Failed> {
    let name = new_name();
    let first = start(&name, [0, 2], LONG, &["heap", "1073741824"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 1500000; \"$0\" \"$@\"; sleep 1"]);
    limited.arg(env::current_exe()?).args([MEETS, "1", "2", &name, "60000", "heap", "1073741824"]);
    let output = limited.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("`ulimit -v`") {
        return Err(format!("{output:?}").into());
    }
    first.ended().fails(&["PE 1 failed: it could not begin the job: its own error says why"])
}

/// A process that fails before it has met the others says so, and they do not wait for it.
fn process_that_cannot_begin() -> Result<(), Failed> {
    for (script, words) in [
        ("ulimit -f 0; \"$0\" \"$@\"", "PE 0 cannot take part: "),
        ("CONSORT_SEGMENT=paper \"$0\" \"$@\"", "CONSORT_SEGMENT"),
    ] {
        let name = new_name();
        let second = start(&name, [1, 3], LONG, &["sums"]);
        let third = start(&name, [2, 3], LONG, &["sums"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", script]).arg(env::current_exe()?);
        limited.args([MEETS, "0", "3", &name, "60000", "sums"]);
        let output = limited.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() || !text.contains(words) {
            return Err(format!("{output:?}").into());
        }
        second.ended().fails(&["PE 0 cannot take part: ", words])?;
        third.ended().fails(&["PE 0 cannot take part: ", words])?;
    }
    Ok(())
}

/// A process that can open no file still has its name, and later turns others away.
fn process_that_can_open_no_file() -> Result<(), Failed> {
    all_work(&[start(&new_name(), [0, 1], SHORT, &["full"]).ended()], "done")
}

/// The library's thread blocks all signals.
fn handlers_run_elsewhere() -> Result<(), Failed> {
    all_work(&start_all(2, &["masked"]), "done")
}
