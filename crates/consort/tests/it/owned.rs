//! Handles that a program keeps: in its structs, between regions, and beyond their PE. The file is
//! long because the tests share the struct `Handles`.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    error,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use consort::{
    Displacements, Error, Job, JoinedPe, Pe, Pool, Rank, Result, Symmetric, Team,
    error::{CallError, LaunchError},
    nonblocking::{Planned, Request},
    ops::Sum,
    symmetric::{CompletionCounter, Signal},
};
use consort_conformance::{
    data::Random,
    turns::{LIMIT, alone},
};
use consort_sandbox::seeds::seeds;

/// All kinds of handles on one PE.
struct Handles {
    world: Team,
    half: Team,
    memory: Symmetric<u64>,
    counter: CompletionCounter,
    sums: Planned<u64>,
    pending: Option<Request<Vec<u64>>>,
}

impl Handles {
    fn new(pe: &Pe) -> Result<Self> {
        let world = pe.world().clone();
        let half = world.split(Some(world.rank().0 % 2), 0)?.expect("a colour");
        let memory = half.symmetric(4)?;
        let sums = world.plan(3).all_reduce(Sum)?;
        Ok(Self { counter: world.completion_counter()?, world, half, memory, sums, pending: None })
    }

    /// Uses each of them, in step `step`.
    fn step(&mut self, step: u64) -> Result<()> {
        let pes = self.world.size() as u64;
        assert_eq!(self.sums.start(vec![step; 3])?.wait()?, [pes * step; 3]);
        self.memory.put(self.half.right(), 0, &[step])?;
        self.memory.quiet()?;
        self.half.barrier()?;
        assert_eq!(self.memory.load(0)?, step);
        self.counter.add(self.world.right(), 1)?;
        assert!(self.counter.wait(step)? >= step);
        if let Some(pending) = self.pending.replace(self.world.start(vec![step]).all_reduce(Sum)?) {
            assert_eq!(pending.wait()?, [pes * (step - 1)]);
        }
        self.half.barrier()
    }

    /// Returns what each of them answers when it is used.
    fn answers(&mut self) -> Vec<Option<Error>> {
        let mut data = [1];
        vec![
            self.world.barrier().err(),
            self.half.all_reduce(1, Sum).err(),
            self.world.split(None, 0).err(),
            self.memory.load(0).err(),
            self.memory.put(Rank(0), 0, &[1]).err(),
            self.memory.share().err(),
            self.counter.get().err(),
            self.sums.start(vec![1; 3]).err(),
            self.world.start(vec![1]).all_reduce(Sum).err(),
            self.world.send(self.world.right(), &[1]).err(),
            self.world
                .overlap(|scope| scope.start_in_place(&mut data).all_reduce(Sum).map(drop))
                .err(),
            self.world.async_broadcasts(|_, _| ()).err(),
            self.world.progress().err(),
        ]
    }
}

thread_local! {
    /// Handles that a program leaves behind on its thread.
    static LEFT: RefCell<Option<Handles>> = const { RefCell::new(None) };
}

fn ended() -> Option<Error> {
    Some(Error::Call(CallError::Ended))
}

/// A struct without lifetimes holds a PE and its handles. Its fields may be dropped in any order.
#[test]
fn struct_holds_a_joined_pe() {
    struct PeFirst(JoinedPe, Handles);
    struct PeLast(Handles, JoinedPe);
    let job = Job::threads(4).without_wisdom().build().unwrap();
    alone(LIMIT, move || {
        for round in 0..20 {
            thread::scope(|scope| {
                for at in 0..4 {
                    let job = &job;
                    scope.spawn(move || {
                        let pe = job.join_as(Rank::new((at + round) % 4)).unwrap();
                        let handles = Handles::new(&pe).unwrap();
                        if at % 2 == 0 {
                            let mut one = PeFirst(pe, handles);
                            (1..=5).try_for_each(|step| one.1.step(step)).unwrap();
                            assert_eq!(one.0.world().size(), 4);
                        } else {
                            let mut one = PeLast(handles, pe);
                            (1..=5).try_for_each(|step| one.0.step(step)).unwrap();
                            assert_eq!(one.1.world().size(), 4);
                        }
                    });
                }
            });
        }
    });
}

/// A handle outlives its PE: each use is an error, and its memory stays.
#[test]
fn handles_fail_after_their_program_ends() {
    alone(LIMIT, || {
        thread::scope(|scope| {
            let job = Job::threads(2).without_wisdom().build().unwrap();
            for _ in 0..2 {
                let job = job.clone();
                scope.spawn(move || {
                    job.run(|pe| {
                        let mut handles = Handles::new(pe)?;
                        handles.step(1)?;
                        LEFT.set(Some(handles));
                        Ok(())
                    })
                    .unwrap();
                    drop(job); // the job may be gone
                    let mut handles = LEFT.take().expect("left");
                    assert!(handles.answers().iter().all(|answer| {
                        // The teams of a program end with it.
                        *answer == ended() || *answer == Some(Error::Call(CallError::Freed))
                    }));
                    assert_eq!(handles.world.barrier().err(), ended());
                    let pending = handles.pending.take().expect("started");
                    assert_eq!(pending.wait(), Ok(vec![2])); // it was complete
                    assert_eq!(handles.world.size(), 2);
                    LEFT.set(Some(handles)); // dropped when the thread ends
                });
            }
        });
    });
}

/// A program of `run` leaves its handles on threads that end.
#[test]
fn handles_dropped_by_a_thread_that_ends() {
    alone(LIMIT, || {
        for _ in 0..10 {
            let done = Job::threads(3).without_wisdom().run(|pe| {
                LEFT.set(Some(Handles::new(pe)?));
                Ok(())
            });
            done.unwrap();
        }
    });
}

/// Only the thread that has handles on a PE may run it.
#[test]
fn another_thread_cannot_run_a_pe_with_handles() {
    alone(LIMIT, || {
        let job = Job::threads(1).without_wisdom().build().unwrap();
        let held = Error::Launch(LaunchError::HeldElsewhere { rank: Rank(0) });
        let pe = job.join().unwrap();
        let world = pe.world().clone();
        pe.leave().unwrap();
        assert_eq!(world.barrier().err(), ended());
        let on_another_thread = |job: &Job| {
            thread::scope(|scope| scope.spawn(|| job.join_as(Rank(0)).err()).join().unwrap())
        };
        assert_eq!(on_another_thread(&job), Some(held));
        let any = thread::scope(|scope| scope.spawn(|| job.join().err()).join().unwrap());
        assert_eq!(any, Some(Error::Launch(LaunchError::JobFull { pes: 1 })));
        // The handles work again when the PE runs again.
        let pe = job.join().unwrap();
        world.barrier().unwrap();
        pe.leave().unwrap();
        drop(world);
        assert_eq!(on_another_thread(&job), None);
        // A handle that was forgotten binds the PE to this thread.
        let pe = job.join().unwrap();
        #[expect(clippy::mem_forget, reason = "a handle may be forgotten")]
        std::mem::forget(pe.world().clone());
        drop(pe);
        assert!(on_another_thread(&job).is_some());
        job.run(|pe| pe.world().barrier()).unwrap();
    });
}

/// One thread has handles on two PEs. Those of the PE that it runs work.
#[test]
fn thread_uses_only_handles_of_the_pe_it_runs() {
    alone(LIMIT, || {
        let job = Job::threads(2).without_wisdom().build().unwrap();
        let mut worlds = Vec::new();
        for rank in [Rank(0), Rank(1)] {
            let pe = job.join_as(rank).unwrap();
            let joined = Error::Launch(LaunchError::JoinedAlready { rank });
            assert_eq!(job.join_as(Rank(0)).err(), Some(joined.clone()));
            assert_eq!(job.join_as(Rank(1)).err(), Some(joined));
            worlds.push(pe.world().clone());
        }
        for (rank, other) in [(0, 1), (1, 0), (0, 1)] {
            let pe = job.join_as(Rank(rank)).unwrap();
            assert_eq!(worlds[rank as usize].progress(), Ok(()));
            assert_eq!(worlds[other].progress().err(), ended());
            assert_eq!(worlds[rank as usize].rank(), pe.world().rank());
        }
    });
}

/// A collective refuses memory of a PE that does not run, as that memory's own operations do.
#[test]
fn collective_refuses_memory_of_a_pe_that_does_not_run() {
    alone(LIMIT, || {
        let job = Job::threads(2).without_wisdom().build().unwrap();
        let allocate = |rank| {
            let pe = job.join_as(rank).unwrap();
            [(); 2].map(|()| pe.world().symmetric::<u64>(2).unwrap())
        };
        let [source, target] = thread::scope(|scope| {
            let other = scope.spawn(|| drop(allocate(Rank(1))));
            let of_this_thread = allocate(Rank(0));
            other.join().unwrap();
            of_this_thread
        });
        let pe = job.join_as(Rank(1)).unwrap();
        let world = pe.world();
        assert_eq!(source.load(0).err(), ended());
        assert_eq!(world.in_symmetric(&source, &target).all_reduce(Sum).err(), ended());
        assert_eq!(world.in_symmetric(&source, &source).broadcast(Rank(1)).err(), ended());
        assert_eq!(world.start_symmetric(&source, &target).all_reduce(Sum).err(), ended());
        let blocks = Displacements::new(&[1, 1]).unwrap();
        let call = world.in_symmetric(&source, &target).with_counts((&blocks, &blocks));
        assert_eq!(call.all_to_all().err(), ended());
    });
}

/// A thread may run PEs of two jobs, and keep memory of both.
#[test]
fn memory_of_another_job_is_refused() {
    alone(LIMIT, || {
        let jobs = [(); 2].map(|()| Job::threads(1).without_wisdom().build().unwrap());
        let [pe, other_pe] = jobs.each_ref().map(|job| job.join().unwrap());
        let [mut own, mut other] = [&pe, &other_pe].map(|pe| Handles::new(pe).unwrap());
        let refused = Some(Error::Call(CallError::OtherJob));
        let (world, memory, foreign) = (pe.world(), &own.memory, &other.memory);
        assert_eq!(world.in_symmetric(memory, foreign).all_reduce(Sum).err(), refused);
        assert_eq!(world.in_symmetric(foreign, memory).all_reduce(Sum).err(), refused);
        assert_eq!(world.in_symmetric(foreign, foreign).broadcast(Rank(0)).err(), refused);
        assert_eq!(world.start_symmetric(memory, foreign).all_reduce(Sum).err(), refused);
        let blocks = Displacements::new(&[4]).unwrap();
        let call = world.in_symmetric(memory, foreign).with_counts((&blocks, &blocks));
        assert_eq!(call.all_to_all().err(), refused);
        let set = Signal::Set(1);
        assert_eq!(memory.put_signal(Rank(0), 0, &[7], foreign, 0, set).err(), refused);
        assert_eq!(memory.put_counted(Rank(0), 0, &[7], &other.counter).err(), refused);
        assert_eq!(memory.get_counted(Rank(0), 0, &mut [7], &other.counter).err(), refused);
        let [shared, flags] = [memory, foreign].map(|memory| memory.share().unwrap());
        assert_eq!(shared.put_signal(Rank(0), 0, &[7], &flags, 0, set).err(), refused);
        drop((shared, flags));
        for memory in [memory, foreign] {
            assert_eq!(memory.to_vec(), Ok(vec![0; 4]));
        }
        assert_eq!(other.counter.get(), Ok(0));
        // Both jobs go on.
        own.step(1).unwrap();
        other.step(1).unwrap();
    });
}

/// The first member of a team that leaves the team's handle does not disturb the others.
#[test]
fn clones_share_a_team() {
    alone(LIMIT, || {
        let job = Job::threads(2).without_wisdom();
        job.run(|pe| {
            let team = pe.world().split(Some(0), 0)?.expect("a colour");
            let (clone, memory) = (team.clone(), team.symmetric::<u8>(8)?);
            let plan = team.plan::<u64>(2).all_reduce(Sum)?;
            drop(team);
            clone.barrier()?;
            assert_eq!(plan.start(vec![1, 2])?.wait()?, [2, 4]);
            memory.put(clone.right(), 0, &[1])?;
            clone.clone().free()?;
            let freed = Some(Error::Call(CallError::Freed));
            assert_eq!(clone.barrier().err(), freed);
            assert_eq!(memory.load(0).err(), freed);
            assert_eq!(plan.start(vec![1, 2]).err(), freed);
            Ok(())
        })
        .unwrap();
    });
}

/// A plan belongs to its team: not to the one that uses the team's state next.
#[test]
fn plan_of_a_freed_team_is_not_started_on_the_next_one() {
    alone(LIMIT, || {
        let job = Job::threads(3).without_wisdom();
        job.run(|pe| {
            let world = pe.world();
            let old = world.split(Some(world.rank().0 / 2), 0)?.expect("a colour");
            let (old_sums, old_memory) = (old.plan::<u64>(1).all_reduce(Sum)?, old.symmetric(1)?);
            old.free()?;
            let new = world.split(Some(0), 0)?.expect("a colour");
            let (sums, memory) = (new.plan::<u64>(1).all_reduce(Sum)?, new.symmetric(1)?);
            let freed = Some(Error::Call(CallError::Freed));
            for step in 1..=100 {
                assert_eq!(old_sums.start(vec![step]).err(), freed);
                assert_eq!(old_memory.put(Rank(0), 0, &[7_u64]).err(), freed);
                memory.put(new.right(), 0, &[step])?;
                memory.quiet()?;
                assert_eq!(sums.start(vec![step])?.wait()?, [3 * step]);
                assert_eq!(memory.load(0)?, step);
                new.barrier()?;
            }
            Ok(())
        })
        .unwrap();
    });
}

/// PEs that start plans of different teams, although the calls are alike, get an error.
#[test]
fn plans_of_different_teams_do_not_match() {
    alone(LIMIT, || {
        let ended = Job::threads(2).without_wisdom().run(|pe| {
            let world = pe.world();
            let teams = [(); 2].map(|()| world.split(Some(0), 0));
            let [one, other] = teams.map(|team| team.map(|team| team.expect("a colour")));
            let team = if world.rank() == Rank(0) { one? } else { other? };
            team.plan::<u64>(1).all_reduce(Sum)?.start(vec![1])?.wait()
        });
        assert!(matches!(ended, Err(Error::Mismatched(_))), "{ended:?}");
    });
}

fn pool(pes: usize) -> Pool {
    Job::threads(pes).without_wisdom().heap_bytes(1 << 20).pool().expect("a pool")
}

/// The regions of a pool find what they have kept.
#[test]
fn regions_keep_handles() {
    alone(LIMIT, || {
        for pes in [1, 2, 5] {
            let pool = pool(pes);
            for step in 1..=200 {
                pool.run(|pe| pe.keep(Handles::new)?.step(step)).unwrap();
            }
            // There is one value of each type.
            pool.run(|pe| {
                assert_eq!(*pe.keep(|_| Ok(7_u32))?, 7);
                *pe.keep(|_| Ok(0_u32))? += 1;
                pe.keep(Handles::new)?.step(201)
            })
            .unwrap();
            let kept = pool.run(|pe| pe.keep(|_| Ok(0_u32)).map(|kept| *kept));
            assert!(kept.unwrap().iter().all(|&kept| kept == 8));
        }
    });
}

/// Teams and memory without handles end with their region, even if the program keeps others.
#[test]
fn regions_end_teams_and_memory_that_are_not_kept() {
    alone(LIMIT, || {
        let pool = pool(3);
        for step in 1..=2000 {
            pool.run(|pe| {
                let mut kept = pe.keep(Handles::new)?;
                let team = pe.world().split(Some(0), 0)?.expect("a colour");
                let memory = team.symmetric::<u8>(100_000)?; // of the 1 MiB of a PE
                memory.put(team.right(), 0, &[1; 1000])?;
                pe.world().send(pe.world().right(), &[step])?;
                let mut from_left = [0];
                pe.world().receive(pe.world().left(), &mut from_left)?;
                assert_eq!(from_left, [step]);
                if step % 100 == 1 { kept.step(step / 100 + 1) } else { Ok(()) }
            })
            .unwrap();
        }
    });
}

/// Between regions, handles of PE 0 answer with an error.
#[test]
fn handles_of_pe_0_fail_between_regions() {
    alone(LIMIT, || {
        let pool = pool(2);
        pool.run(|pe| {
            if pe.world().rank() == Rank(0) {
                LEFT.set(Some(Handles::new(pe)?));
                return Ok(());
            }
            pe.keep(Handles::new).map(drop)
        })
        .unwrap();
        let mut handles = LEFT.take().expect("left");
        assert!(handles.answers().iter().all(|answer| *answer == ended()));
        LEFT.set(Some(handles));
        pool.run(|pe| match pe.world().rank() {
            Rank(0) => LEFT.with_borrow_mut(|left| left.as_mut().expect("left").step(1)),
            _ => pe.keep(Handles::new)?.step(1),
        })
        .unwrap();
        LEFT.set(None);
    });
}

/// PE 0 belongs to the thread on which it has handles.
#[test]
fn pe_0_stays_on_the_thread_with_its_handles() {
    alone(LIMIT, || {
        let pool = pool(2);
        pool.run(|pe| pe.keep(Handles::new)?.step(1)).unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| pool.run(|pe| pe.world().barrier()).err());
            let held = Error::Launch(LaunchError::HeldElsewhere { rank: Rank(0) });
            assert_eq!(other.join().unwrap(), Some(held));
        });
        pool.run(|pe| pe.keep(Handles::new)?.step(2)).unwrap();
        // Threads that keep nothing share it.
        let pool = self::pool(2);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.run(|pe| pe.world().barrier()).unwrap();
                    }
                });
            }
        });
    });
}

/// Counts its values, and checks that each is dropped on its own thread.
struct Counted {
    thread: ThreadId,
    handles: Handles,
}

static COUNTED: AtomicUsize = AtomicUsize::new(0);

impl Counted {
    fn new(pe: &Pe) -> Result<Self> {
        let handles = Handles::new(pe)?; // fails in a job that has failed
        COUNTED.fetch_add(1, Relaxed);
        Ok(Self { thread: thread::current().id(), handles })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.thread, thread::current().id());
        assert_eq!(self.handles.world.size(), 3);
        COUNTED.fetch_sub(1, Relaxed);
    }
}

/// A failed region drops what its PEs have kept, and so does the end of a pool. The next region
/// makes it again.
#[test]
fn kept_values_end_with_a_failed_region_and_with_the_pool() {
    alone(LIMIT, || {
        let pool = pool(3);
        for failing in [Rank(0), Rank(2)] {
            for step in 1..=3 {
                pool.run(|pe| pe.keep(Counted::new)?.handles.step(step)).unwrap();
                assert_eq!(COUNTED.load(Relaxed), 3);
            }
            let failed = pool.run(|pe| {
                let kept = pe.keep(Counted::new)?;
                assert!(pe.world().rank() != failing, "a panic of the program");
                kept.handles.world.barrier()
            });
            assert!(matches!(failed, Err(Error::PeFailed { rank, .. }) if rank == failing));
            assert_eq!(COUNTED.load(Relaxed), 0);
            let failed = pool.run(|pe| {
                let _kept = pe.keep(Counted::new)?;
                if pe.world().rank() == failing {
                    return Err(Error::JobFailed);
                }
                Ok(()) // this PE itself has no error
            });
            assert!(failed.is_err());
        }
        pool.run(|pe| pe.keep(Counted::new)?.handles.step(1)).unwrap();
        assert_eq!(COUNTED.load(Relaxed), 3);
        drop(pool);
        assert_eq!(COUNTED.load(Relaxed), 0);
    });
}

/// Notes the answer of its PE's world when it is dropped.
struct Asks(Team);

static ANSWERS: Mutex<Vec<Option<Error>>> = Mutex::new(Vec::new());

impl Asks {
    /// Makes a PE keep such a value.
    fn keep(pe: &Pe) -> Result<()> {
        pe.keep(|pe| Ok(Self(pe.world().clone()))).map(drop)
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        ANSWERS.lock().expect("no panic").push(self.0.barrier().err());
    }
}

/// When a program fails, what its PEs have kept is dropped before they leave the job: its handles
/// return the job's error.
#[test]
fn kept_values_end_before_a_failed_pe_leaves() {
    let failed = |answer: &Option<Error>| matches!(answer, Some(Error::PeFailed { .. }));
    alone(LIMIT, move || {
        let ended = Job::threads(2).without_wisdom().run(|pe| {
            Asks::keep(pe)?;
            Err::<(), _>(Error::JobFailed)
        });
        assert!(ended.is_err());
        let answers = std::mem::take(&mut *ANSWERS.lock().expect("no panic"));
        assert!(answers.len() == 2 && answers.iter().all(failed), "{answers:?}");
        // A panic ends the program of a thread that has joined.
        let job = Job::threads(1).without_wisdom().build().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let pe = job.join().unwrap();
            Asks::keep(&pe).unwrap();
            panic!("as planned");
        }));
        assert!(panic.is_err());
        let answers = std::mem::take(&mut *ANSWERS.lock().expect("no panic"));
        assert!(answers.len() == 1 && answers.iter().all(failed), "{answers:?}");
    });
}

/// Starts a call that only PE 0 of two makes. Its operator has the token.
fn start_alone(pe: &Pe, token: &Arc<()>) -> Result<()> {
    let token = Arc::clone(token);
    let adds = move |one: u64, other: u64| {
        let _held = &token;
        one + other
    };
    pe.world().start(vec![1]).all_reduce(adds).map(drop)
}

/// When a program fails, its PE drops its pending calls, although the job still exists.
#[test]
fn pending_calls_end_with_a_failed_pe() {
    alone(LIMIT, || {
        let token = Arc::new(());
        let failed = Job::threads(2).without_wisdom().run(|pe| {
            if pe.world().rank() == Rank(0) {
                start_alone(pe, &token)?;
                return Err(Error::JobFailed);
            }
            let begun = Instant::now();
            while pe.world().progress().is_ok() || Arc::strong_count(&token) > 1 {
                assert!(begun.elapsed() < LIMIT / 2, "PE 0 still has its call");
            }
            Ok(())
        });
        assert!(matches!(failed, Err(Error::JobFailed)), "{failed:?}");
        let job = Job::threads(2).without_wisdom().build().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let pe = job.join().unwrap();
            start_alone(&pe, &token).unwrap();
            panic!("as planned");
        }));
        assert!(panic.is_err());
        assert_eq!(Arc::strong_count(&token), 1);
    });
}

/// Kept values are made once at a time.
#[test]
fn kept_values_in_use() {
    alone(LIMIT, || {
        let pool = pool(2);
        pool.run(|pe| {
            let kept = pe.keep(|_| Ok(1_u8))?;
            let again = pe.keep(|_| Ok(2_u8));
            assert_eq!(again.err(), Some(Error::Call(CallError::InUse("u8"))));
            drop(kept);
            assert_eq!(*pe.keep(|_| Ok(2_u8))?, 1);
            // It needs itself.
            let nested = pe.keep(|pe| pe.keep(|_| Ok(1_u16)).map(|kept| *kept));
            assert_eq!(nested.err(), Some(Error::Call(CallError::InUse("u16"))));
            // It cannot be made, or panics; then it can.
            assert!(pe.keep::<u32>(|_| Err(Error::JobFailed)).is_err());
            let other = pe.try_keep::<u32, Box<dyn error::Error>>(|_| Err("no value".into()));
            assert!(other.is_err_and(|error| error.to_string() == "no value"));
            let panic = catch_unwind(AssertUnwindSafe(|| pe.keep::<u32>(|_| panic!("no value"))));
            assert!(panic.is_err());
            assert_eq!(*pe.keep(|_| Ok(3_u32))?, 3);
            Ok(())
        })
        .unwrap();
    });
}

/// A program of `run`, or a thread that leaves, keeps nothing.
#[test]
fn kept_values_end_with_a_program() {
    static DROPS: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
    struct Noted;
    impl Drop for Noted {
        fn drop(&mut self) {
            DROPS.lock().unwrap().push(thread::current().id());
        }
    }
    alone(LIMIT, || {
        let job = Job::threads(1).without_wisdom().build().unwrap();
        for rounds in 1..=3 {
            job.run(|pe| pe.keep(|_| Ok(Noted)).map(drop)).unwrap();
            assert_eq!(*DROPS.lock().unwrap(), vec![thread::current().id(); rounds]);
        }
    });
}

/// Sends a message from PE 0 to PE 1.
fn message(pe: &Pe) -> Result<()> {
    match pe.world().rank() {
        Rank(0) => pe.world().send(Rank(1), &[7]),
        _ => pe.world().receive(Rank(0), &mut [0]),
    }
}

/// A handle on a freed team does not keep the team that uses its state next.
#[test]
fn handle_on_a_freed_team_keeps_no_other() {
    alone(LIMIT, || {
        let pool = pool(2);
        pool.run(|pe| {
            let team = pe.world().split(Some(0), 0)?.expect("a colour");
            if pe.world().rank() == Rank(0) {
                *pe.keep(|_| Ok(None))? = Some(team.clone());
            }
            team.free()?;
            message(pe) // its team takes the state
        })
        .unwrap();
        for _ in 0..3 {
            pool.run(message).unwrap();
        }
    });
}

/// A call that only one PE makes in a kept team is reported at the region's end, even if it waits
/// for nobody.
#[test]
fn mismatch_in_a_kept_team_is_reported() {
    alone(LIMIT, || {
        let pool = pool(2);
        let failed = pool.run(|pe| {
            let both = pe.keep(|pe| pe.world().split(Some(0), 0))?;
            let both = both.as_ref().expect("a colour");
            if pe.world().rank() == Rank(0) { both.broadcast(1, Rank(0)).map(drop) } else { Ok(()) }
        });
        assert!(matches!(failed, Err(Error::Mismatched(_))), "{failed:?}");
    });
}

/// A kept value that outlives its program does not replace that of the next one.
#[test]
fn outdated_kept_value_does_not_replace_the_next_one() {
    alone(LIMIT, || {
        let job = Job::threads(1).without_wisdom().build().unwrap();
        let pe = job.join().unwrap();
        let old = pe.keep(|_| Ok(1_u8)).unwrap();
        pe.leave().unwrap();
        let pe = job.join().unwrap();
        drop(pe.keep(|_| Ok(2_u8)).unwrap());
        drop(old);
        assert_eq!(*pe.keep(|_| Ok(3_u8)).unwrap(), 2);
    });
}

/// The destructors of kept values may panic.
#[test]
fn kept_values_may_panic_when_dropped() {
    struct Panics(bool);
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(!self.0, "a destructor's panic");
        }
    }
    alone(LIMIT, || {
        let pool = pool(3);
        for (panics, fails) in [(1, 1), (0, 0), (0, 1), (1, 0)] {
            let failed = pool.run(|pe| {
                let me = pe.world().rank();
                let _kept = pe.keep(|_| Ok(Panics(me == Rank(panics))))?;
                pe.world().barrier()?;
                if me == Rank(fails) {
                    thread::sleep(Duration::from_millis(20)); // the others have left the region
                    return Err(Error::JobFailed);
                }
                Ok(())
            });
            assert!(failed.is_err(), "the value of PE {panics} panics, and PE {fails} fails");
            pool.run(|pe| pe.world().barrier()).unwrap();
        }
        pool.run(|pe| pe.keep(|_| Ok(Panics(true))).map(drop)).unwrap();
        // PE 0 drops its value here; the others drop theirs on their threads.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(pool)));
        assert!(dropped.is_err());
    });
}

/// Random programs: in each region, the PEs make, use and drop some of their teams and memory. A
/// model knows their members and contents.
#[test]
fn kept_handles_behave_as_the_model() {
    /// The teams of a PE, by their number in the program.
    type Kept = BTreeMap<usize, (Team, Symmetric<u64>)>;
    const TEAMS: usize = 5;
    for seed in seeds(16, 300, &[]) {
        alone(LIMIT, move || {
            let mut random = Random(seed);
            let pes = 1 + random.below(5);
            let pool = pool(pes);
            // By team: the colours of the PEs that made it, its value, and who still has it.
            let mut model: BTreeMap<usize, (Vec<u32>, u64, Vec<bool>)> = BTreeMap::new();
            for region in 0..60_u64 {
                let at = random.below(TEAMS);
                let complete = model.get(&at).is_some_and(|(_, _, has)| has.iter().all(|&has| has));
                let step = match (complete, random.below(4)) {
                    (false, _) => 0,
                    (true, 0) => 1,
                    (true, _) => 2,
                };
                let colors: Vec<u32> = (0..pes).map(|_| u32::from(random.chance(2))).collect();
                let drops: Vec<bool> = (0..pes).map(|_| random.below(2) == 0).collect();
                let before = model.get(&at).cloned();
                pool.run(|pe| {
                    let me = pe.world().rank().index();
                    let mut kept = pe.keep(|_| Ok(Kept::new()))?;
                    match step {
                        0 => {
                            kept.remove(&at);
                            let team = pe.world().split(Some(colors[me]), 0)?.expect("a colour");
                            let memory = team.symmetric(1)?;
                            memory.store(0, 0)?;
                            kept.insert(at, (team, memory));
                        }
                        1 => {
                            if drops[me] {
                                kept.remove(&at);
                            }
                        }
                        _ => {
                            let (of, value, _) = before.as_ref().expect("made");
                            let (team, memory) = kept.get(&at).expect("kept");
                            let members = of.iter().filter(|color| **color == of[me]).count();
                            assert_eq!(team.size(), members, "seed {seed}, region {region}");
                            assert_eq!(memory.load(0)?, *value, "seed {seed}, region {region}");
                            team.barrier()?;
                            memory.put(team.right(), 0, &[region])?;
                            let sum = team.all_reduce(region, Sum)?;
                            assert_eq!(sum, region * members as u64, "seed {seed}");
                            memory.quiet()?;
                            team.barrier()?;
                        }
                    }
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("seed {seed}, region {region}: {error}"));
                match step {
                    0 => drop(model.insert(at, (colors, 0, vec![true; pes]))),
                    1 => {
                        let has = &mut model.get_mut(&at).expect("made").2;
                        has.iter_mut().zip(drops).for_each(|(has, drops)| *has &= !drops);
                    }
                    _ => model.get_mut(&at).expect("made").1 = region,
                }
            }
        });
    }
}
