//! The programs of processes that meet.

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    iter,
    net::SocketAddr,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::{self, ExitCode},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, JobBuilder, Pe, Rank, Rendezvous, Result,
    ops::Sum,
    symmetric::{Signal, Until},
};
use consort_sandbox::children;
use rustix::process::{Pid, Resource, Rlimit, Signal as Kill, getrlimit, kill_process, setrlimit};

use super::{
    pieces,
    running::{INHERITED, LONG, MEETS, SOON, start},
};
use crate::{
    early_ends::be_busy,
    public::{play, programs},
};

/// Returns the arguments of a process that meets others, if this is one.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let mut all = env::args().skip(1);
    all.next().filter(|first| first == MEETS).map(|_| all.collect())
}

/// Runs the program of a process.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [rank, pes, name, limit, ref program @ ..] = arguments[..] else { panic!("no program") };
    let (rank, pes) = (rank.parse().map(Rank).expect("a rank"), pes.parse().expect("a size"));
    let limit = Duration::from_millis(limit.parse().expect("milliseconds"));
    let job = |place: &str| Job::processes(rank, pes, rendezvous(place).timeout(limit));
    let result = match *program {
        ["suite", count, first, end] => suite(job(name), pes, [count, first, end]),
        ["sums"] => job(name).run(sums).map(|sums| println!("sum {}", sums[rank])),
        ["forks"] => fork_all(&rendezvous(name), pes),
        ["forks", "pipe"] => {
            let (pipe, _other_end) = io::pipe().expect("a pipe");
            fork_all(&Rendezvous::descriptor(pipe.as_raw_fd()), pes)
        }
        ["files", folder] => files(PathBuf::from(folder), rank, pes),
        ["again", times] => {
            let times: u32 = times.parse().expect("a number");
            (0..times).try_for_each(|_| job(name).run(sums).map(drop)).map(|()| println!("done"))
        }
        ["leaves"] => leave_a_child(|| job(name)),
        ["child"] => child_of_a_pe(job(name)),
        ["joins"] => join(job(name)),
        ["busy"] => be_busy_until_it_fails(job(name)),
        ["ends"] => end_early(job(name), rank),
        ["waits"] => job(name).run(wait_for_input).map(drop),
        ["heap", bytes] => job(name).heap_bytes(bytes.parse().expect("bytes")).run(sums).map(drop),
        ["environment"] => {
            Job::from_env(1).run(sums).map(|sums| println!("sum {:?}", sums.into_vec()))
        }
        ["full"] => fill_files(job(name), name, limit),
        ["masked"] => look_at_signals(job(name)),
        ["pieces"] => pieces::combine(job(name)),
        ["ordered"] => pieces::combine_in_order(job(name)),
        ["mismatched"] => pieces::mismatch(job(name)),
        ["pool"] => job(name).pool().map(drop),
        _ => panic!("unknown program"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn rendezvous(place: &str) -> Rendezvous {
    match place.parse::<SocketAddr>() {
        _ if place == INHERITED => Rendezvous::descriptor(io::stdin().as_raw_fd()),
        Ok(_) => Rendezvous::address(place),
        Err(_) => Rendezvous::name(place),
    }
}

fn suite(job: JobBuilder, pes: usize, numbers: [&str; 3]) -> Result<()> {
    let [count, first, end] = numbers.map(|one| one.parse::<u64>().expect("a number"));
    let pes = u32::try_from(pes).expect("a few");
    let count = usize::try_from(count).expect("a number of cases");
    let programs = programs(pes, consort_native::Job::capabilities_of(pes), count);
    let played = play(job, &programs, first..end)?;
    assert!(played == [(first..end).count()], "{played:?}");
    println!("played");
    Ok(())
}

/// Makes calls of each kind. Returns the sum of the ranks.
fn sums(pe: &Pe) -> Result<u32> {
    let world = pe.world();
    let me = world.rank().0;
    let sum = world.all_reduce(me, Sum)?;
    let mut long = vec![u64::from(me); 100_000];
    world.in_place(&mut long).all_reduce(Sum)?;
    assert!(long.iter().all(|one| *one == u64::from(sum)));
    let all = world.values(&[me; 3]).all_gather()?;
    assert!(all.iter().zip(0..).all(|(one, at)| *one == at / 3), "{all:?}");
    let memory = world.symmetric::<u64>(3)?;
    world.barrier()?;
    memory.put_signal(world.right(), 0, &[me.into()], &memory, 1, Signal::Set(7))?;
    memory.wait_until(1, Until::Equals(7))?;
    assert_eq!(memory.load(0)?, u64::from(world.left().0));
    memory.fetch_add(Rank(0), 2, 1)?;
    world.barrier()?;
    let mut counted = [0];
    memory.get(Rank(0), 2, &mut counted)?;
    assert_eq!(counted[0], world.size() as u64);
    let half = world.split(Some(me % 2), 0)?.expect("a half");
    assert_eq!(half.all_reduce(1, Sum)?, half.size());
    Ok(sum)
}

fn fork_all(rendezvous: &Rendezvous, pes: usize) -> Result<()> {
    let (mut own, mut others) = (Rank(0), Vec::new());
    for rank in 1..pes {
        match children::fork() {
            0 => {
                own = Rank::new(rank);
                break;
            }
            child => others.push(child),
        }
    }
    let ended = Job::processes(own, pes, rendezvous.clone().timeout(LONG)).run(sums);
    if own != Rank(0) {
        children::end(ended.is_ok());
    }
    others.into_iter().for_each(|child| children::wait("a PE", child));
    println!("sum {}", ended?[own]);
    Ok(())
}

fn files(folder: PathBuf, rank: Rank, pes: usize) -> Result<()> {
    let mut round = 0;
    let exchange = move |own: &[u8]| {
        round += 1;
        let file = |rank: usize| folder.join(format!("{round}.{rank}"));
        let written = folder.join(format!("new.{round}.{rank}"));
        fs::write(&written, own)?;
        fs::rename(written, file(rank.index()))?;
        // The last first: any order will do.
        (0..pes).rev().map(|rank| read_when_there(&file(rank))).collect::<io::Result<Vec<_>>>()
    };
    let sums = Job::processes(rank, pes, Rendezvous::all_gather(exchange)).run(sums)?;
    println!("sum {}", sums[rank]);
    Ok(())
}

fn read_when_there(file: &Path) -> io::Result<Vec<u8>> {
    let begun = Instant::now();
    while !file.exists() && begun.elapsed() < LONG {
        thread::sleep(Duration::from_millis(1));
    }
    fs::read(file)
}

/// Leaves a child behind that has been forked in a job.
fn leave_a_child(job: impl Fn() -> JobBuilder) -> Result<()> {
    let child = job().run(|_| match children::fork() {
        0 => {
            thread::sleep(LONG);
            children::end(true)
        }
        child => Ok(child),
    })?;
    job().run(sums).map(|_| println!("done"))?;
    let child = Pid::from_raw(child[0]).expect("a child");
    kill_process(child, Kill::KILL).expect("it runs");
    Ok(())
}

fn child_of_a_pe(job: JobBuilder) -> Result<()> {
    job.run(|pe| {
        let world = pe.world();
        let memory = world.symmetric::<u64>(1)?;
        children::run("a child of a PE", || {
            let refused = [memory.put(world.right(), 0, &[9]), world.barrier()];
            assert!(refused.iter().all(|one| *one == Err(Error::Forked)), "{refused:?}");
        });
        match children::fork() {
            0 => return Ok(false), // the child ends the program, and drops the job
            child => children::wait("a child that returns", child),
        }
        world.barrier()?;
        assert_eq!(memory.load(0)?, 0);
        Ok(true)
    })
    .map(|_| println!("done"))
    .inspect_err(|error| {
        if *error == Error::Forked {
            children::end(true);
        }
    })
}

fn join(job: JobBuilder) -> Result<()> {
    let mut built = Some(job.build()?);
    children::run("a job that a child drops", || drop(built.take()));
    let job = built.expect("the parent's job");
    let joining = thread::spawn({
        let job = job.clone();
        move || job.run(sums)
    });
    println!("sum {}", joining.join().expect("no panic")?);
    Ok(())
}

/// Makes calls until one fails. Then nothing of the job is left in this process.
fn be_busy_until_it_fails(job: JobBuilder) -> Result<()> {
    let open = || {
        let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let mut all: Vec<_> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
        all.sort();
        all
    };
    let before = open();
    let ended = job.run(|pe| {
        print!("b");
        io::stdout().flush().expect("an output");
        be_busy(pe)
    });
    let since = Instant::now();
    while open() != before {
        assert!(since.elapsed() < SOON, "open files: {:?}, before: {before:?}", open());
        thread::sleep(Duration::from_millis(1));
    }
    ended.map(drop)
}

fn end_early(job: JobBuilder, rank: Rank) -> Result<()> {
    let ended = job.run(|pe| {
        pe.world().barrier()?;
        if rank == Rank(1) {
            process::exit(0);
        }
        pe.world().barrier()
    });
    ended.map(drop)
}

/// Waits until the standard input ends.
fn wait_for_input(pe: &Pe) -> Result<()> {
    pe.world().barrier()?;
    print!("w");
    io::stdout().flush().expect("an output");
    io::stdin().read_to_end(&mut Vec::new()).expect("an input");
    pe.world().barrier()
}

/// Keeps the name of a job while this process can open no file.
fn fill_files(job: JobBuilder, name: &str, limit: Duration) -> Result<()> {
    let job = job.build()?;
    let before = getrlimit(Resource::Nofile);
    let other = || start(name, [0, 1], limit, &["sums"]);
    let comes = other();
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).expect("a lower limit");
    let files: Vec<fs::File> = iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    thread::sleep(limit * 2);
    drop(files);
    setrlimit(Resource::Nofile, before).expect("the limit from before");
    for one in [comes, other()] {
        assert!(one.ended().fails(&["by a job that is complete"]).is_ok(), "it has the name");
    }
    println!("done");
    drop(job);
    Ok(())
}

/// Looks at the signals that the library's threads block.
fn look_at_signals(job: JobBuilder) -> Result<()> {
    job.run(|pe| {
        pe.world().barrier()?;
        let threads = fs::read_dir("/proc/self/task").expect("threads").flatten();
        let read = |thread: &fs::DirEntry, file| {
            fs::read_to_string(thread.path().join(file)).unwrap_or_default()
        };
        let watch = threads.filter(|one| read(one, "comm").trim() == "consort watch");
        for thread in watch {
            let status = read(&thread, "status");
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t"));
            let blocked = blocked.and_then(|mask| u64::from_str_radix(mask, 16).ok());
            // No thread can block signals 9 and 19, and the C library keeps 32 and 33.
            let can_come = !blocked.unwrap_or(0) & !(1 << 8 | 1 << 18 | 3 << 31);
            assert_eq!(can_come, 0, "signals that are not blocked");
            println!("done");
        }
        pe.world().barrier()
    })
    .map(drop)
}
