//! The address space that jobs map, and their behaviour when it is limited. Each measured job is in
//! a separate process.

#![cfg(target_os = "linux")]

use std::{env, fs, process::Command};

use consort::{
    Job, JobBuilder, Rank, Result, Team,
    bindings::{JobBuilderExt as _, Origin},
    ops::Sum,
};
use consort_conformance::turns::{LIMIT, alone};
use consort_fabric::Nodes;

const MB: usize = 1 << 20;

/// The variable with the task of a process of this test.
const TASK: &str = "TEST_TASK";

/// Like [`process_under`], with `ulimit -v`.
fn process(test: &str, task: &str, most: usize, heap: &str) -> String {
    process_under("-v", test, task, most, heap)
}

/// Runs a test of this file with a task in a separate process, under a limit of `most` MiB. Each
/// heap has `heap` bytes, or the default size if that is empty. Returns the process's output.
///
/// # Panics
/// When the process fails.
fn process_under(limit: &str, test: &str, task: &str, most: usize, heap: &str) -> String {
    let program = env::current_exe().expect("this program");
    let script = format!("ulimit -c 0; ulimit {limit} {}; exec \"$@\"", most * 1024);
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(program);
    command.args([&format!("limits::{test}"), "--exact", "--nocapture"]).env(TASK, task);
    command.env("CONSORT_HEAP_BYTES", heap).env_remove("RUST_MIN_STACK");
    let output = command.output().expect("it starts");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let text = text.concat();
    assert!(output.status.success(), "{task} with {most} MiB: {}: {text}", output.status);
    text
}

/// More than any job here needs.
const ENOUGH: usize = 1 << 22;

fn task() -> Option<usize> {
    env::var(TASK).ok().and_then(|text| text.parse().ok())
}

#[test]
fn job_under_a_limit_of_memory_works_or_names_the_limit() {
    let own = "job_under_a_limit_of_memory_works_or_names_the_limit";
    if let Some(pes) = task() {
        let job = Job::threads(pes).without_wisdom().run(|pe| {
            let memory = pe.world().symmetric::<u64>(1000)?;
            memory.store(1, 7)?;
            pe.world().all_reduce(1, Sum)
        });
        return println!("{}", job.map_or_else(|error| error.to_string(), |_| "works".to_owned()));
    }
    for limit in ["-v", "-d"] {
        works_or_names_the_limit(own, limit);
    }
}

fn works_or_names_the_limit(own: &str, limit: &str) {
    for pes in [2, 4, 16] {
        // Heaps, the common memory of all jobs, and stacks.
        let needed = pes * 73 + 60;
        let steps = [80, needed - 60, needed, needed + 20, needed + 60, needed + 90, 5650, 8000];
        let ends = steps.map(|most| {
            let text = process_under(limit, own, &pes.to_string(), most, "64M");
            let name = format!("`ulimit {limit}`");
            let (works, is_named) = (text.contains("works\n"), text.contains(&name));
            assert!(works != is_named, "{pes} PEs with {most} MiB: {text}");
            works
        });
        // `ulimit -d` does not count memory that processes can share.
        let counts = limit == "-v" || env::var("CONSORT_SEGMENT").as_deref() != Ok("shared");
        assert!(!(counts && ends[0]), "{limit}, {pes} PEs: {ends:?}");
        assert!(ends[6..].iter().all(|&works| works), "{limit}, {pes} PEs: {ends:?}");
    }
}

/// Shared memory is a file, which has a separate limit.
#[test]
fn job_under_a_limit_of_files_works_or_names_the_limit() {
    let own = "job_under_a_limit_of_files_works_or_names_the_limit";
    if task().is_none() {
        let ends = [1, 8000].map(|most| process_under("-f", own, "2", most, "64M"));
        assert!(ends[0].contains("`ulimit -f` limits a file to"), "{}", ends[0]);
        assert!(ends[1].contains("works\n"), "{}", ends[1]);
        return;
    }
    let pes = Job::threads(2).without_wisdom().memory(Origin::Shared);
    let job = pes.run(|pe| pe.world().all_reduce(1, Sum));
    println!("{}", job.map_or_else(|error| error.to_string(), |_| "works".to_owned()));
}

/// Returns the bytes of address space, and the bytes that a core file would have.
fn mapped() -> (usize, usize) {
    let text = fs::read_to_string("/proc/self/smaps").expect("the system says");
    let (mut all, mut dumped, mut size) = (0, 0, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Size:") => {
                size = words.next().and_then(|text| text.parse().ok()).unwrap_or(0) * 1024;
                all += size;
            }
            Some("VmFlags:") => {
                let flags: Vec<&str> = words.collect();
                dumped += if flags.contains(&"dd") || !flags.contains(&"rd") { 0 } else { size };
            }
            _ => {}
        }
    }
    (all, dumped)
}

#[test]
fn address_space_and_core_files_follow_usage() {
    const BYTES: usize = 8 * MB;
    let own = "address_space_and_core_files_follow_usage";
    let Some(pes) = task() else {
        [2, 64].iter().for_each(|pes| drop(process(own, &pes.to_string(), ENOUGH, "64M")));
        return;
    };
    let before = mapped();
    let job = Job::threads(pes).without_wisdom().run(|pe| {
        let world = pe.world();
        let look = || {
            world.barrier()?;
            let now = mapped();
            world.barrier()?;
            Ok::<_, consort::Error>(now)
        };
        let launched = look()?;
        let memory = world.symmetric::<u8>(BYTES)?;
        memory.store(BYTES - 1, 1)?;
        Ok((launched, look()?))
    });
    let (launched, allocated) = job.expect("a job that goes well")[0];
    let (all, dumped) = (launched.0 - before.0, launched.1 - before.1);
    // A heap and a stack each, and sixteen arenas of the C library.
    assert!(all < pes * 72 * MB + 16 * 64 * MB + 200 * MB, "{pes} PEs map {} MiB", all / MB);
    assert!(dumped < pes * 5 * MB + 16 * MB, "core files have {} MiB", dumped / MB);
    let grown = allocated.1 - launched.1;
    assert!((pes * BYTES..pes * (BYTES + 3 * MB)).contains(&grown), "{} MiB more", grown / MB);
}

/// The kernel would materialize each page of a shared mapping that it writes to a core file. So
/// memory that is allocated but never touched must not count in full.
#[test]
fn core_files_have_a_share_of_a_gigabyte_of_shared_heaps() {
    const SHARED: &str = "shared";
    let own = "core_files_have_a_share_of_a_gigabyte_of_shared_heaps";
    if env::var(TASK).is_ok_and(|task| task == SHARED) {
        let pes = Job::threads(2).without_wisdom().memory(Origin::Shared).heap_bytes(3 << 30);
        let grown = pes.run(|pe| {
            let world = pe.world();
            world.barrier()?;
            let before = mapped().1;
            let memory = world.symmetric::<u8>(2 << 30)?;
            memory.store(100, 1)?;
            world.barrier()?;
            Ok(mapped().1 - before)
        });
        let grown = grown.expect("a job that goes well")[0];
        assert!((900 * MB..1032 * MB).contains(&grown), "{} MiB more", grown / MB);
        return;
    }
    process(own, SHARED, ENOUGH, "");
}

#[test]
fn heap_of_512_mib_is_the_default_and_costs_no_memory() {
    const DEFAULT: usize = 512 * MB;
    let own = "heap_of_512_mib_is_the_default_and_costs_no_memory";
    if env::var(TASK).is_err() {
        process(own, "default", ENOUGH, "");
        return;
    }
    let resident = || {
        let pages = fs::read_to_string("/proc/self/statm").expect("the system says");
        let pages = pages.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
        pages.map_or(0, |pages: usize| pages * 4096)
    };
    let before = (mapped().0, resident());
    let job = Job::threads(8).without_wisdom().run(|pe| {
        let world = pe.world();
        let memory = world.symmetric::<u8>(DEFAULT)?;
        memory.store(DEFAULT - 1, 1)?;
        world.barrier()?;
        let now = (mapped().0, resident());
        world.barrier()?;
        Ok(now)
    });
    let now = job.expect("a job that goes well")[0];
    let (all, resident) = (now.0 - before.0, now.1.saturating_sub(before.1));
    assert!(all > 8 * DEFAULT && resident < 64 * MB, "{} and {} MiB", all / MB, resident / MB);
}

/// Programs that set no size start wherever their PEs do.
#[test]
fn default_heap_is_smaller_under_limits_of_memory() {
    let own = "default_heap_is_smaller_under_limits_of_memory";
    if env::var(TASK).is_err() {
        for limit in ["-v", "-d"] {
            for most in [325, 1000, 2800, 8000] {
                let text = process_under(limit, own, "sum", most, "");
                assert!(text.contains("the sum is 6"), "{limit}, {most} MiB: {text}");
            }
        }
        return;
    }
    let job = Job::threads(4).without_wisdom().run(|pe| {
        let world = pe.world();
        let memory = world.symmetric::<u8>(MB)?;
        memory.store(0, 1)?;
        world.all_reduce(world.rank().0, Sum)
    });
    println!("the sum is {}", job.expect("a job that goes well")[0]);
}

/// Returns three PEs that act as processes of one machine.
fn three() -> JobBuilder {
    Job::threads(3).without_wisdom().loopback([Nodes::Blocks(1), Nodes::One], 1)
}

/// Returns the bytes of memory files that this process maps.
fn files_in_memory() -> usize {
    let text = fs::read_to_string("/proc/self/maps").expect("the system says");
    let range = |line: &str| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some(number(end)? - number(start)?)
    };
    text.lines().filter(|line| line.contains("memfd:consort")).filter_map(range).sum()
}

/// Exchanges private buffers of several lengths. The others copy all of them from shared memory.
fn exchange(world: &Team) -> Result<()> {
    let (own, pes) = (world.rank().index(), world.size());
    for len in [1000, 400_000, 3_000_000, 1_000_000] {
        let mut data: Vec<u64> = (0..len).map(|at| (at * pes + own) as u64).collect();
        let mut all = vec![0; len * pes];
        world.slices(&data, &mut all).all_gather()?;
        assert!(
            all.iter().enumerate().all(|(at, &word)| word == ((at % len) * pes + at / len) as u64)
        );
        world.in_place(&mut data).broadcast(Rank(1))?;
        assert!(data.iter().enumerate().all(|(at, &word)| word == (at * pes + 1) as u64));
    }
    Ok(())
}

#[test]
fn copies_of_private_buffers_get_memory_when_they_need_it() {
    let (before, after) = alone(LIMIT, || {
        let job = three().heap_bytes(MB).run(|pe| {
            let world = pe.world();
            world.barrier()?;
            let before = files_in_memory();
            world.barrier()?;
            exchange(world)?;
            exchange(world)?;
            world.barrier()?;
            let after = files_in_memory();
            world.barrier()?;
            Ok((before, after))
        });
        job.expect("a job that goes well")[0]
    });
    assert!(before < 400 * MB, "{} MiB at first", before / MB);
    assert!(after > before + 20 * MB, "{} MiB after {}", after / MB, before / MB);
}

#[test]
fn teams_get_memory_when_they_need_it() {
    let many = |pe: &consort::Pe| {
        let world = pe.world();
        for count in [20, 40] {
            let make = |_| Ok(world.strided(Rank(0), 1, 3)?.expect("all are in it"));
            let teams: Vec<Team> = (0..count).map(make).collect::<Result<_>>()?;
            for (number, team) in (0..).zip(&teams) {
                assert_eq!(team.all_reduce(number, Sum)?, 3 * number);
            }
            teams.into_iter().try_for_each(Team::free)?;
        }
        Ok(())
    };
    alone(LIMIT, move || {
        for pes in [Job::threads(3).without_wisdom(), three()] {
            pes.heap_bytes(MB).run(many).expect("a job that goes well");
        }
    });
}
