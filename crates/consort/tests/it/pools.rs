//! Regions of a pool, inputs, and a program's own errors.

use std::{
    cell::RefCell,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, JobBuilder, Pool, Rank,
    error::{CallError, LaunchError},
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};

fn pool(pes: usize) -> Pool {
    Job::threads(pes).heap_bytes(1 << 16).pool().expect("a pool")
}

#[test]
fn regions_follow_each_other_and_borrow() {
    for pes in [1, 2, 5] {
        let pool = pool(pes);
        let count = AtomicU64::new(0);
        for round in 1..300_u64 {
            let sums = pool.run(|pe| {
                count.fetch_add(1, Relaxed);
                let world = pe.world();
                if round % 50 == 0 {
                    let table = world.symmetric::<u64>(10)?;
                    let half = world.split(Some(world.rank().0 % 2), 0)?.expect("a team");
                    half.barrier()?;
                    table.store(0, round)?;
                    drop(world.start(vec![round]).all_reduce(Sum)?);
                }
                world.all_reduce(round, Sum)
            });
            let sums = sums.expect("a region");
            assert_eq!(sums.into_vec(), vec![round * pes as u64; pes]);
        }
        assert_eq!(count.into_inner(), 299 * pes as u64);
    }
}

#[test]
fn after_a_failed_region_the_next_one_works() {
    let pool = pool(3);
    let last = |pe: &consort::Pe| pe.world().rank() == Rank(2);
    for _ in 0..5 {
        let panics = pool.run(|pe| {
            assert!(!last(pe), "on purpose");
            pe.world().barrier()
        });
        assert!(matches!(panics, Err(Error::PeFailed { rank: Rank(2), .. })), "{panics:?}");
        let fails = pool.run(|pe| {
            if last(pe) { Err(Error::Call(CallError::Taken)) } else { pe.world().barrier() }
        });
        assert_eq!(fails, Err(Error::Call(CallError::Taken)));
        let leaves = pool.run(|pe| if last(pe) { Ok(()) } else { pe.world().barrier() });
        assert!(matches!(leaves, Err(Error::Mismatched(_))), "{leaves:?}");
        // Nobody waits for PE 2, so only the caller notices.
        let skips = pool.run(|pe| {
            let loose = pe.world().with_sync(SyncModes::LOOSE);
            let tree = Candidate::new("knomial").with("radix", 2);
            loose.algorithms().force(Collective::Broadcast, Some(tree)); // the root does not wait
            if last(pe) { Ok(0) } else { loose.broadcast(1, Rank(0)) }
        });
        assert!(matches!(skips, Err(Error::Mismatched(_))), "{skips:?}");
        assert_eq!(pool.run(|pe| pe.world().all_reduce(1, Sum)).map(|all| all[0]), Ok(3));
    }
}

#[test]
fn a_region_inside_a_region_is_an_error() {
    let (pool, other) = (pool(2), pool(2));
    let nested = pool.run(|_| pool.run(|_| Ok(())));
    assert_eq!(nested, Err(Error::Launch(LaunchError::Nested)));
    let inner = AtomicU64::new(0);
    let both = pool.run(|pe| {
        if pe.world().rank() == Rank(1) {
            other.run(|_| Ok(inner.fetch_add(1, Relaxed)))?;
        }
        pe.world().barrier()
    });
    assert!(both.is_ok());
    assert_eq!(inner.into_inner(), 2);
    // Indirectly, from the caller's thread and from the other pool's.
    for rank in [Rank(0), Rank(1)] {
        let around = pool.run(|pe| match pe.world().rank() {
            Rank(0) => {
                let there = |pe: &consort::Pe| {
                    if pe.world().rank() == rank { pool.run(|_| Ok(())).map(drop) } else { Ok(()) }
                };
                other.run(there).map(drop)
            }
            _ => Ok(()),
        });
        assert_eq!(around, Err(Error::Launch(LaunchError::Nested)));
        assert!(pool.run(|_| Ok(())).is_ok() && other.run(|_| Ok(())).is_ok());
    }
}

/// The first regions are those of the thread that has created the pool.
#[test]
fn a_pool_serves_one_thread_after_another() {
    let pool = pool(2);
    let regions = || {
        for _ in 0..100 {
            assert_eq!(pool.run(|pe| pe.world().all_reduce(1, Sum)).map(|all| all[1]), Ok(2));
        }
    };
    regions();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(regions);
        }
        regions();
    });
}

/// Each thread takes its turn, although the creator of the pool is in a region when another thread
/// begins its first one.
#[test]
fn first_region_of_another_thread_waits_for_that_of_the_creator() {
    let (pool, is_inside, is_over) = (pool(2), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while is_inside.load(Acquire) == 0 {
                thread::yield_now();
            }
            let seen = pool.run(|_| Ok(is_over.load(Relaxed)));
            assert_eq!(seen.expect("a region"), [1, 1]);
        });
        let creators = pool.run(|pe| {
            if pe.world().rank() == Rank(0) {
                is_inside.store(1, Release); // pairs with the acquire above
                thread::sleep(Duration::from_millis(50));
                is_over.store(1, Relaxed);
            }
            Ok(())
        });
        assert_eq!(creators.map(drop), Ok(()));
    });
}

#[test]
fn inputs_go_to_pes_by_rank() {
    let mut data = [0_u32; 12];
    let sums = Job::threads(3).run_with(data.chunks_mut(4), |pe, part| {
        part.fill(pe.world().rank().0);
        Ok(part.len())
    });
    assert_eq!(sums.expect("an input each"), [4; 3]);
    assert_eq!(data[..5], [0, 0, 0, 0, 1]);
    let texts = [String::from("a"), String::from("b")];
    let back = pool(2).run_with(texts, |_, text| Ok(text + "!"));
    assert_eq!(back.expect("an input each"), ["a!", "b!"]);
    let run = |given: usize| Job::threads(3).run_with(vec![(); given], |_, ()| Ok(()));
    assert_eq!(run(2), Err(Error::Launch(LaunchError::InputCount { given: 2, pes: 3 })));
    assert_eq!(run(4), Err(Error::Launch(LaunchError::InputCount { given: 4, pes: 3 })));
    let endless = pool(3).run_with(std::iter::repeat(()), |_, ()| Ok(()));
    assert_eq!(endless, Err(Error::Launch(LaunchError::InputCount { given: 4, pes: 3 })));
}

#[test]
fn program_error_is_returned_unchanged() {
    let missing = |pe: &consort::Pe| {
        if pe.world().rank() == Rank(1) {
            fs::read("there is no such file")?;
        }
        Ok::<_, io::Error>(pe.world().barrier()?)
    };
    let error = Job::threads(2).try_run(missing).expect_err("there is no such file");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = pool(2).try_run(missing).expect_err("there is no such file");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = pool(2).try_run(|_| -> Result<(), io::Error> { panic!("on purpose") });
    assert!(error.expect_err("it panics").to_string().contains("on purpose"));
}

#[test]
fn timed_out_wait_names_the_late_pe() {
    let ended = Job::threads(3).run(|pe| {
        pe.world().barrier()?;
        if pe.world().rank() == Rank(1) {
            thread::sleep(Duration::from_millis(1000));
        }
        pe.with_timeout(Duration::from_millis(400), || pe.world().barrier())
    });
    let error = ended.expect_err("PE 1 is late");
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(error.to_string().contains("missing: PE 1"), "{error}");
    // The limit ends with the closure.
    let ended = Job::threads(2).run(|pe| {
        let world = pe.world();
        world.barrier()?;
        pe.with_timeout(Duration::from_millis(500), || world.barrier())?;
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(700));
        }
        world.barrier()
    });
    assert_eq!(ended.map(|_| ()), Ok(()));
    // The smaller of two limits applies.
    let ended = Job::threads(2).run(|pe| {
        let world = pe.world();
        world.barrier()?;
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(300));
        }
        let long = Duration::from_secs(100);
        pe.with_timeout(Duration::from_millis(100), || pe.with_timeout(long, || world.barrier()))
    });
    assert!(matches!(ended, Err(Error::TimedOut(_))), "{ended:?}");
}

#[test]
fn a_request_is_waited_for_in_parts() {
    let waited = AtomicU64::new(0);
    let waits = Job::threads(2).run(|pe| {
        let world = pe.world();
        while world.rank() == Rank(1) && waited.load(Relaxed) < 3 {
            thread::yield_now();
        }
        let mut request = world.start(vec![1]).all_reduce(Sum)?;
        for waits in 0.. {
            match request.wait_timeout(Duration::from_millis(10))? {
                Ok(sum) => {
                    assert_eq!(sum, [2]);
                    return Ok(waits);
                }
                Err(later) => request = later,
            }
            if world.rank() == Rank(0) {
                waited.fetch_add(1, Relaxed);
            }
        }
        unreachable!("it ends")
    });
    assert!(waits.expect("no failure")[0] > 2);
}

/// The threads of an idle pool sleep, and each is woken for the next region.
#[test]
fn region_after_a_pause_begins_promptly() {
    let pool = pool(6);
    let mut late = Vec::new();
    for _ in 0..40 {
        thread::sleep(Duration::from_millis(25));
        let begun = Instant::now();
        assert!(pool.run(|pe| pe.world().barrier()).is_ok());
        late.push(begun.elapsed());
    }
    late.sort_unstable();
    // On a busy machine, some woken threads wait for a processor.
    assert!(late[10] < Duration::from_millis(10), "{late:?}");
}

/// The program ignores the error.
#[test]
fn failed_job_is_an_error_without_one_returned() {
    let panics = |left: u32, _: u32| if left == 0 { panic!("the operator") } else { left };
    let ignores = |pe: &consort::Pe| {
        let _ = catch_unwind(AssertUnwindSafe(|| pe.world().reduce(0, panics, Rank(0))));
        Ok(())
    };
    let ended = Job::threads(2).run(ignores);
    assert!(
        matches!(&ended, Err(error) if error.to_string().contains("the operator")),
        "{ended:?}"
    );
    let ended = pool(2).run(ignores);
    assert!(
        matches!(&ended, Err(error) if error.to_string().contains("the operator")),
        "{ended:?}"
    );
}

/// A thread-local value runs a region when it is dropped, after the library's values are gone.
#[test]
fn a_region_runs_while_a_threads_values_are_dropped() {
    struct Last(Pool, std::sync::mpsc::Sender<bool>);
    impl Drop for Last {
        fn drop(&mut self) {
            let sums = self.0.run(|pe| pe.world().all_reduce(1, Sum));
            let _ = self.1.send(sums.is_ok_and(|sums| sums[1] == 2));
        }
    }
    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = thread::spawn(|| {
        LAST.with_borrow_mut(|last| last.insert(Last(pool(2), sender)).0.run(|_| Ok(())).map(drop))
    });
    assert_eq!(thread.join().expect("no panic"), Ok(()));
    assert_eq!(receiver.recv(), Ok(true));
}

#[test]
fn threads_have_the_name_of_their_job() {
    let name = |_: &consort::Pe| Ok(thread::current().name().map(str::to_owned));
    let named = || Job::threads(2).named("solver");
    let names = named().run(name).expect("a job");
    assert_eq!(names[1].as_deref(), Some("solver 1"));
    let names = named().pool().and_then(|pool| pool.run(name)).expect("a pool");
    assert_eq!(names[1].as_deref(), Some("solver 1"));
    assert_eq!(named().build().expect("a job").name(), "solver");
    let names = Job::threads(2).run(name).expect("a job");
    assert_eq!(names[1].as_deref(), Some("PE 1"));
}

/// A pool may be used from any thread, and around a panic.
const _: () = is_safe::<(Pool, consort::Job, consort::Barrier, JobBuilder)>();

const fn is_safe<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}

/// Counts its values: a program and a result that are small, or too large for a cache line.
struct Counted<'c, const WORDS: usize> {
    count: &'c AtomicU64,
    words: [u64; WORDS],
}

impl<'c, const WORDS: usize> Counted<'c, WORDS> {
    fn new(count: &'c AtomicU64, word: u64) -> Self {
        count.fetch_add(1, Relaxed);
        Self { count, words: [word; WORDS] }
    }
}

impl<const WORDS: usize> Drop for Counted<'_, WORDS> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
    }
}

/// Runs a program and takes results of these sizes, in regions that succeed and that fail.
fn moves_and_drops_once<const PROGRAM: usize, const RESULT: usize>() {
    let pool = pool(3);
    let (programs, results) = (AtomicU64::new(0), AtomicU64::new(0));
    for round in 0..40 {
        let own = Counted::<PROGRAM>::new(&programs, round);
        let ended = pool.try_run(|pe| -> Result<_, Error> {
            assert_eq!(own.words, [round; PROGRAM]);
            let rank = pe.world().rank();
            let result = Counted::<RESULT>::new(&results, u64::from(rank.0) + round);
            match (round % 4, rank) {
                (1, Rank(1)) => Err(CallError::Taken.into()),
                (2, Rank(0)) => panic!("on purpose"),
                _ => Ok(result),
            }
        });
        match ended {
            Ok(taken) => {
                assert_eq!((round % 4 == 0 || round % 4 == 3, results.load(Relaxed)), (true, 3));
                let words = (0..).map(|rank| [rank + round; RESULT]);
                assert!(taken.iter().map(|result| result.words).eq(words.take(3)));
            }
            Err(_) => {
                assert_eq!((round % 4 == 1 || round % 4 == 2, programs.load(Relaxed)), (true, 1))
            }
        }
        drop(own);
        assert_eq!((programs.load(Relaxed), results.load(Relaxed)), (0, 0));
        // A program that owns what it captures is dropped with its region.
        let own = Counted::<PROGRAM>::new(&programs, round);
        let sums = pool.run(move |pe| {
            let own = &own;
            pe.world().all_reduce(own.words[0], Sum)
        });
        let sums = sums.expect("a region");
        assert_eq!((sums.into_vec(), programs.load(Relaxed)), (vec![3 * round; 3], 0));
    }
}

#[test]
fn programs_and_results_of_each_size_are_dropped_once() {
    moves_and_drops_once::<1, 1>();
    moves_and_drops_once::<1, 9>();
    moves_and_drops_once::<9, 1>();
    moves_and_drops_once::<9, 9>();
}

/// A program and a result may use their pool when they are dropped, after the region.
#[test]
fn what_a_region_leaves_may_use_the_pool() {
    struct Uses<'p>(&'p Pool, &'p AtomicU64);
    impl Drop for Uses<'_> {
        fn drop(&mut self) {
            let Self(pool, count) = self;
            let sizes = pool.run(|pe| Ok(pe.world().size())).expect("a region");
            count.fetch_add(sizes.iter().sum::<usize>() as u64, Relaxed);
        }
    }
    let (pool, count) = (&pool(2), &AtomicU64::new(0));
    let program = Uses(pool, count);
    let results = pool.run(move |_| {
        let _program = &program;
        Ok(Uses(pool, count))
    });
    assert_eq!(count.load(Relaxed), 4, "the program is dropped");
    drop(results);
    assert_eq!(count.load(Relaxed), 12, "and the results");
    let program = Uses(pool, count);
    let failed = pool.run(move |pe| {
        let _program = &program;
        let rank = pe.world().rank();
        if rank == Rank(0) { Ok(Uses(pool, count)) } else { Err(CallError::Taken.into()) }
    });
    assert!(failed.is_err());
    assert_eq!(count.load(Relaxed), 20);
}

/// A pool's thread runs the destructor of a kept value after the pool of an outer region is gone.
#[test]
fn kept_value_runs_a_region_after_the_outer_pool_is_gone() {
    struct RunsOne;
    impl Drop for RunsOne {
        fn drop(&mut self) {
            let sizes = pool(2).run(|pe| Ok(pe.world().size())).expect("a region");
            assert_eq!(sizes, [2, 2]);
            ENDED.fetch_add(1, Relaxed);
        }
    }
    static ENDED: AtomicU64 = AtomicU64::new(0);
    let inner = pool(2);
    let outer = pool(1);
    let begun = outer.run(|_| {
        inner.run(|pe| {
            pe.keep(|_| Ok(RunsOne))?;
            Ok(())
        })
    });
    begun.expect("a region in a region");
    drop(outer);
    drop(inner);
    assert_eq!(ENDED.load(Relaxed), 2);
}

/// A pool that is dropped in a region waits for its threads. Values that these threads drop cannot
/// begin a region of the outer pool.
#[test]
fn kept_value_is_refused_a_region_that_waits_for_it() {
    struct Uses(Arc<Pool>, Arc<AtomicU64>);
    impl Drop for Uses {
        fn drop(&mut self) {
            let Self(pool, refused) = self;
            let ended = pool.run(|_| Ok(()));
            let is_refused = matches!(ended, Err(Error::Launch(LaunchError::Nested)));
            refused.fetch_add(is_refused.into(), Relaxed);
        }
    }
    let (outer, refused) = (Arc::new(pool(1)), Arc::<AtomicU64>::default());
    let ended = outer.run(|_| {
        let inner = pool(2);
        inner.run(|pe| {
            pe.keep(|_| Ok(Uses(Arc::clone(&outer), Arc::clone(&refused))))?;
            Ok(())
        })?;
        drop(inner);
        Ok(())
    });
    ended.expect("a region in a region");
    assert_eq!(refused.load(Relaxed), 2);
}
