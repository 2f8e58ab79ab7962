//! Nonblocking calls: what comes of them, in whatever order, and what goes wrong in them.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Candidate, Collective, Error, Failure, Pes, PlanError, Rank, Request, Result, Sum, SyncModes,
    Team, Waiting,
};

use crate::{
    data::{Call, Random, affine, blank},
    registry::{everything, one_each},
    turns::{LIMIT, alone, note},
    typed::{blocks, slices},
};

/// How long others may take to hear of a failure.
const SOON: Duration = Duration::from_secs(1);
/// Steps of a random program.
const STEPS: usize = 300;

fn pes_of(pes: u32) -> Pes {
    Pes::threads(pes).heap_bytes(1 << 20)
}

/// What a call comes to, if anything.
type Data = Option<Vec<u64>>;

/// A request for any collective.
struct AnyRequest<'p>(Pin<Box<dyn Future<Output = Result<Data>> + 'p>>);

impl<'p> AnyRequest<'p> {
    fn of<B: 'p>(request: Result<Request<'p, B>>, result: impl Fn(B) -> Data + 'p) -> Result<Self> {
        let request = request?;
        Ok(Self(Box::pin(async move { request.await.map(result) })))
    }

    fn wait(self) -> Result<Data> {
        block_on(self.0)
    }
}

/// Starts any collective by the method of its name.
fn start<'p>(team: Team<'p>, call: &Call) -> Result<AnyRequest<'p>> {
    let me = team.rank();
    let Call { collective, root, len, .. } = *call;
    let source = call.source::<u64>(me);
    let some = Some::<Vec<u64>>;
    match collective {
        Collective::Barrier => AnyRequest::of(team.start_barrier(), |()| None),
        Collective::Broadcast => {
            let data = if me == root { source } else { vec![1; len] };
            AnyRequest::of(team.start_broadcast(data, root), some)
        }
        Collective::Scatter => AnyRequest::of(team.start_scatter(source, len, root), some),
        Collective::Gather => AnyRequest::of(team.start_gather(source, root), |all| all),
        Collective::AllGather => AnyRequest::of(team.start_all_gather(source), some),
        Collective::AllToAll => AnyRequest::of(team.start_all_to_all(source), some),
        Collective::Reduce => AnyRequest::of(team.start_reduce(source, affine, root), |all| all),
        Collective::AllReduce => AnyRequest::of(team.start_all_reduce(source, affine), some),
        Collective::ReduceScatter => {
            AnyRequest::of(team.start_reduce_scatter(source, affine), some)
        }
        Collective::Scan => AnyRequest::of(team.start_scan(source, affine), some),
        Collective::ExclusiveScan => {
            AnyRequest::of(team.start_exclusive_scan(source, affine), |all| all)
        }
        Collective::ScatterVector => {
            let given = blocks(team, source.len());
            AnyRequest::of(team.start_scatter_vector(source, given, len, root), some)
        }
        Collective::GatherVector => {
            let received = blocks(team, len * team.size() as usize);
            AnyRequest::of(team.start_gather_vector(source, received, root), |all| all)
        }
        Collective::AllGatherVector => {
            let received = blocks(team, len * team.size() as usize);
            AnyRequest::of(team.start_all_gather_vector(source, received), some)
        }
        Collective::AllToAllVector => {
            let [given, received] = [(); 2].map(|()| blocks(team, source.len()));
            AnyRequest::of(team.start_all_to_all_vector(source, given, received), some)
        }
    }
}

/// What a request must come to.
fn expected(call: &Call, me: Rank) -> Data {
    if call.collective == Collective::Broadcast && me == call.root {
        return Some(call.source(me));
    }
    call.result(me, &affine)
}

fn check(call: &Call, me: Rank, result: Data) {
    let Call { collective, pes, root, len, .. } = *call;
    assert!(
        result == expected(call, me),
        "{collective} of {len}, root {root}, on PE {me} of {pes}"
    );
}

/// An executor of one task: polls when it is woken, and never otherwise.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Release);
        }
    }
    let mut future = pin!(future);
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    let since = Instant::now();
    loop {
        if flag.0.swap(false, Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return output;
        }
        assert!(since.elapsed() < LIMIT, "a task that nobody wakes");
        thread::yield_now();
    }
}

/// Every algorithm with every parameter, several calls under way at once.
fn every_algorithm(pes: u32, collective: Collective) {
    alone(LIMIT, move || {
        for candidate in everything(collective) {
            note(format!("{candidate} among {pes}"));
            let outcome = pes_of(pes).force(collective, candidate.clone()).run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let root = Rank(pes - 1);
                for (seed, len) in (0..).zip([1, 0, 9, 700, 3000]) {
                    let calls =
                        [seed, seed + 100].map(|seed| Call { collective, pes, root, len, seed });
                    let requests = match calls.each_ref().map(|call| start(world, call)) {
                        [Err(Error::Plan(PlanError::Incapable { .. })), Err(_)] => continue,
                        [one, other] => [one?, other?],
                    };
                    let [one, other] = requests;
                    check(&calls[1], me, other.wait()?);
                    check(&calls[0], me, one.wait()?);
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{candidate} among {pes}: {error}"));
        }
    });
}

macro_rules! every_algorithm_of {
    ($($name:ident: $collective:ident;)*) => {$(
        #[test]
        fn $name() {
            for pes in [1, 2, 5] {
                every_algorithm(pes, Collective::$collective);
            }
        }
    )*};
}

every_algorithm_of! {
    barriers: Barrier;
    broadcasts: Broadcast;
    scatters: Scatter;
    gathers: Gather;
    all_gathers: AllGather;
    exchanges: AllToAll;
    reductions: Reduce;
    all_reductions: AllReduce;
    reduce_scatters: ReduceScatter;
    scans: Scan;
    exclusive_scans: ExclusiveScan;
}

/// A collective in symmetric memory with every root and in every mode, by the choice of the library
/// or by one algorithm. What a PE has no use for still says where the root's lies.
fn every_root_in_symmetric_memory(pes: u32, collective: Collective, forced: Option<&Candidate>) {
    let launch = match forced {
        Some(candidate) => pes_of(pes).force(collective, candidate.clone()),
        None => pes_of(pes),
    };
    let outcome = launch.run(|pe| {
        let world = pe.world();
        let me = world.rank();
        for (seed, len) in (0..).zip([1, 700]) {
            let blocks = |count: u32| count as usize * len;
            let source = world.symmetric::<u64>(blocks(collective.source_blocks(pes, true)))?;
            let is_one = collective == Collective::Broadcast;
            let target_len = blocks(collective.target_blocks(pes, !is_one));
            let target = world.symmetric::<u64>(target_len)?;
            for root in (0..pes).map(Rank) {
                for sync in SyncModes::every() {
                    let call = Call { collective, pes, root, len, seed };
                    let received = if is_one { &source } else { &target };
                    received.put(me, 0, &blank(received.len()))?;
                    source.put(me, 0, &call.source(me))?;
                    world.barrier()?;
                    let team = world.with(sync);
                    team.start_symmetric(collective, &source, &target, affine, root)?.wait()?;
                    // With exit mode None what moves may still be moving.
                    world.barrier()?;
                    let Some(expected) = call.result::<u64, _>(me, &affine) else { continue };
                    let mut found = vec![0; expected.len()];
                    received.get(me, 0, &mut found)?;
                    assert!(
                        found == expected,
                        "{collective} of {len}, root {root}, {sync}, on PE {me} of {pes}"
                    );
                }
            }
        }
        Ok(())
    });
    match outcome {
        Ok(_) | Err(Error::Plan(PlanError::Incapable { .. })) => {}
        Err(error) => panic!("{collective} by {forced:?} among {pes}: {error}"),
    }
}

#[test]
fn symmetric_memory_of_every_collective_from_every_root() {
    alone(LIMIT, || {
        for collective in Collective::EVERY {
            if collective == Collective::Barrier {
                continue;
            }
            for pes in 2..=4 {
                note(format!("{collective} by choice among {pes}"));
                every_root_in_symmetric_memory(pes, collective, None);
                for candidate in one_each(collective) {
                    note(format!("{collective} by {candidate} among {pes}"));
                    every_root_in_symmetric_memory(pes, collective, Some(&candidate));
                }
            }
        }
    });
}

/// Calls of three teams, blocking and not, complete and waited for in any order.
fn at_random(seed: u64, helpers: bool) {
    let mut random = Random(seed);
    let (pes, rows) = *random.pick(&[(1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (9, 3)]);
    let waiting = *random.pick(&[Waiting::SpinYield, Waiting::SpinYieldPark]);
    let outcome = alone(LIMIT, move || {
        let pes_of = pes_of(pes).waiting(waiting);
        let pes_of = if helpers { pes_of.helper_threads() } else { pes_of };
        pes_of.run(|pe| {
            let grid = pe.world().cartesian(rows)?;
            let teams = [pe.world(), grid.row, grid.column];
            let (mut program, mut own) =
                (Random(seed), Random(!seed ^ u64::from(pe.world().rank().0)));
            let mut under_way = Vec::new();
            for step in 0..STEPS {
                own.dawdle();
                if pe.world().rank() == Rank(0) {
                    note(format!("CONSORT_SEED={seed}, {pes} PEs, step {step}"));
                }
                let every: Vec<_> = SyncModes::every().collect();
                let team = program.pick(&teams).with(*program.pick(&every));
                let root = Rank(u32::try_from(program.below(32)).expect("few") % team.size());
                let call = Call {
                    collective: *program.pick(&Collective::EVERY),
                    pes: team.size(),
                    root,
                    len: *program.pick(&[0, 1, 1, 2, 7, 50, 500, 4000]),
                    seed: program.next(),
                };
                match program.below(10) {
                    0..6 => under_way.push((start(team, &call)?, call, team.rank())),
                    6..8 => {
                        let me = team.rank();
                        let mut target = vec![0; call.target_len(me)];
                        let source = call.source::<u64>(me);
                        slices(
                            team.with(SyncModes::MINE),
                            call.collective,
                            &source,
                            &mut target,
                            affine,
                            root,
                        )?;
                        let right = call.result(me, &affine).is_none_or(|right| right == target);
                        assert!(right, "{:?} in {team:?}", call.collective);
                    }
                    // What follows is each PE's own business.
                    8 => team.progress()?,
                    _ => {}
                }
                while under_way.len() > 40 || (!under_way.is_empty() && own.chance(3)) {
                    let (request, call, me) = under_way.swap_remove(own.below(under_way.len()));
                    if own.chance(8) {
                        drop(request);
                    } else {
                        check(&call, me, request.wait()?);
                    }
                }
            }
            for (request, call, me) in under_way {
                check(&call, me, request.wait()?);
            }
            Ok(())
        })
    });
    outcome.unwrap_or_else(|error| panic!("CONSORT_SEED={seed} repeats this: {error}"));
}

#[test]
fn programs_come_to_what_they_must() {
    match std::env::var("CONSORT_SEED") {
        Ok(seed) => at_random(seed.parse().expect("CONSORT_SEED is a number"), false),
        Err(_) => (0..20).for_each(|seed| at_random(seed, false)),
    }
}

#[test]
fn programs_with_helpers_come_to_what_they_must() {
    match std::env::var("CONSORT_SEED") {
        Ok(seed) => at_random(seed.parse().expect("CONSORT_SEED is a number"), true),
        Err(_) => (0..10).for_each(|seed| at_random(seed, true)),
    }
}

/// Three windows of calls, waited for last first; blocking ones that tell nothing of them between.
#[test]
fn more_than_a_window_under_way() {
    for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
        alone(LIMIT, move || {
            pes_of(3).waiting(waiting).run(|pe| {
                let world = pe.world();
                let calls: Vec<_> = (0..200)
                    .map(|seed| {
                        let collective = Collective::EVERY[seed % Collective::EVERY.len()];
                        let root = Rank(u32::try_from(seed % 3).expect("few"));
                        Call { collective, pes: 3, root, len: seed, seed: seed as u64 }
                    })
                    .collect();
                let mut requests = Vec::new();
                for (index, call) in calls.iter().enumerate() {
                    if world.rank() == Rank(1) && index % 50 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    requests.push(start(world, call)?);
                    if index % 20 == 7 {
                        world.barrier()?;
                    }
                }
                for (request, call) in requests.into_iter().zip(&calls).rev() {
                    check(call, world.rank(), request.wait()?);
                }
                Ok(())
            })
        })
        .unwrap();
    }
}

/// PE 0 has left a quarter of the window behind, and its calls are under way still, for it does not
/// look at what has come. PE 2, who sends it, must not come round to their places.
#[test]
fn calls_under_way_keep_their_places() {
    alone(LIMIT / 6, || {
        pes_of(3).force(Collective::Broadcast, Candidate::new("flat")).run(|pe| {
            let world = pe.world();
            let me = world.rank();
            if me == Rank(2) {
                thread::sleep(Duration::from_millis(20));
            }
            let mut requests = Vec::new();
            for index in 0..200_u64 {
                if me == Rank(0) && index == 17 {
                    thread::sleep(Duration::from_millis(60));
                }
                let data = if me == Rank(2) { index } else { u64::MAX };
                requests.push(world.start_broadcast(vec![data], Rank(2))?);
            }
            for (index, request) in (0..).zip(requests) {
                assert_eq!(request.wait()?, [index]);
            }
            Ok(())
        })
    })
    .unwrap();
}

/// Requests that are dropped, forgotten, or left until the end.
#[test]
#[expect(clippy::mem_forget, reason = "what happens then is the question")]
fn nobody_waits_for_them() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Owned;
    impl Drop for Owned {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    alone(LIMIT, || {
        DROPPED.store(0, Relaxed);
        pes_of(4).run(|pe| {
            let world = pe.world();
            for round in 0..100_u64 {
                let owned = Arc::new(Owned);
                let add = move |a: u64, b: u64| {
                    let _kept = &owned;
                    a.wrapping_add(b)
                };
                let request = world.start_all_reduce(vec![round; 1000], add)?;
                match round % 3 {
                    0 => drop(request),
                    1 => std::mem::forget(request),
                    _ => assert_eq!(request.wait()?, vec![4 * round; 1000]),
                }
            }
            world.start_broadcast(vec![1_u8; 10_000], Rank(3)).map(drop)
        })?;
        assert_eq!(DROPPED.load(Relaxed), 400, "every operation ends");
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn a_request_is_tested_polled_and_taken_once() {
    alone(LIMIT, || {
        pes_of(2).run(|pe| {
            let world = pe.world();
            let mut request = world.start_all_reduce(vec![1], Sum)?;
            while !request.test()? {
                thread::yield_now();
            }
            assert!(request.test()?);
            assert_eq!(block_on(&mut request)?, [2]);
            assert!(request.test()?);
            assert_eq!(block_on(&mut request).err(), Some(Error::Taken));
            assert_eq!(request.wait().err(), Some(Error::Taken));
            // Many tasks of one thread, in an order that differs from PE to PE.
            let mut sums: Vec<_> = (0..50)
                .map(|index| world.start_all_reduce(vec![index; 100], Sum))
                .collect::<Result<_>>()?;
            if world.rank() == Rank(1) {
                sums.reverse();
            }
            let mut total = 0;
            block_on(async {
                for sum in sums {
                    total += sum.await?[99];
                }
                Ok::<(), Error>(())
            })?;
            assert_eq!(total, 49 * 50);
            Ok(())
        })
    })
    .unwrap();
}

#[test]
fn borrowed_slices_are_there_when_the_scope_ends() {
    alone(LIMIT, || {
        pes_of(3).run(|pe| {
            let world = pe.world();
            let me = u64::from(world.rank().0);
            for len in [0, 1, 100, 20_000] {
                let (mut one, mut two, source) = (vec![me; len], vec![me; len], vec![me; len]);
                let (mut sum, mut sums, mut all) = (vec![9; len], vec![0; len], vec![0; 3 * len]);
                let scale = 2;
                let scaled = |a: u64, b: u64| a + b * scale / scale; // borrows, too
                let here = world.overlap(|scope| {
                    scope.start_broadcast(&mut one, Rank(1))?.wait()?;
                    scope.start_broadcast(&mut two, Rank(2))?;
                    scope.start_reduce(&source, &mut sum, scaled, Rank(1))?;
                    scope.start_all_reduce(&source, &mut sums, scaled)?;
                    let slices = (&source[..], &mut all[..]);
                    scope.start_collective(Collective::AllGather, len, slices, Sum, Rank(0))?;
                    world.all_reduce(1, Sum)
                })?;
                assert_eq!(here, 3);
                assert!(one.iter().all(|&x| x == 1) && two.iter().all(|&x| x == 2));
                assert!(sum.iter().all(|&x| x == if me == 1 { 3 } else { 9 }));
                assert!(sums.iter().all(|&x| x == 3));
                assert!(all.iter().enumerate().all(|(at, &x)| x == (at / len) as u64));
            }
            let (source, mut target) = ([1; 5], [1; 6]);
            let loose = world.with(SyncModes::LOOSE);
            let error =
                loose.overlap(|scope| scope.start_broadcast(&mut target, Rank(0)).map(drop));
            assert!(matches!(error, Err(Error::BorrowedSlice(_))));
            let error = world.overlap(|scope| {
                let slices = (&source[..], &mut target[..]);
                scope.start_collective(Collective::AllToAll, 2, slices, Sum, Rank(0)).map(drop)
            });
            assert!(matches!(error, Err(Error::Blocks { contributed: 3, .. })), "{error:?}");
            Ok(())
        })
    })
    .unwrap();
}

/// A scope whose closure fails waits for its calls; one that panics does not wait for peers.
#[test]
fn a_scope_that_fails_takes_its_calls_along() {
    let error = alone(LIMIT, || {
        pes_of(3).run(|pe| {
            let world = pe.world();
            let mut data = vec![world.rank().0; 5000];
            let own = Error::Wisdom("nothing is known".to_owned());
            let result: Result<()> = world.overlap(|scope| {
                scope.start_broadcast(&mut data, Rank(1))?;
                Err(own.clone())
            });
            assert_eq!(result.err(), Some(own));
            assert_eq!(data, [1; 5000]);
            world.barrier()?;
            let since = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| {
                world.overlap(|scope| {
                    let request = scope.start_broadcast(&mut data, Rank(1))?;
                    assert!(world.rank() != Rank(2), "as planned");
                    // The scope of 2 ends this job, whoever has its data by then.
                    request.wait().and_then(|()| world.barrier())
                })
            }));
            data.fill(7); // nobody touches it any more
            assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
            match (world.rank(), result) {
                (Rank(2), Err(panic)) => std::panic::resume_unwind(panic),
                (_, Ok(Err(error))) => Err::<(), _>(error),
                (_, other) => panic!("{other:?}"),
            }
        })
    });
    let error = error.expect_err("PE 2 panics");
    assert!(error.to_string().contains("PE 2 failed: it panicked: as planned"), "{error}");
}

/// A PE panics while others are in the midst of each collective, by every algorithm.
fn a_death_in(collective: Collective) {
    alone(LIMIT, move || {
        for candidate in one_each(collective) {
            for words in [1, 2500] {
                note(format!("{candidate}, {words} words"));
                let since = Instant::now();
                let outcome = pes_of(4).force(collective, candidate.clone()).run(|pe| {
                    let world = pe.world();
                    let call = Call { collective, pes: 4, root: Rank(1), len: words, seed: 1 };
                    let request = match start(world, &call) {
                        Err(Error::Plan(PlanError::Incapable { .. })) => return Ok(()),
                        request => request?,
                    };
                    check(&call, world.rank(), request.wait()?);
                    let later = start(world, &call)?;
                    if world.rank() == Rank(2) {
                        panic!("as planned");
                    }
                    let mut requests = vec![later];
                    loop {
                        requests.push(start(world, &call)?);
                        requests.swap_remove(0).wait()?;
                    }
                });
                assert!(since.elapsed() < SOON, "{candidate}: after {:?}", since.elapsed());
                if let Err(error) = outcome {
                    let named = matches!(&error, Error::PeFailed { rank: Rank(2), reason }
                        if reason.contains("as planned"));
                    assert!(named, "{candidate}: {error}");
                }
            }
        }
    });
}

#[test]
fn a_death_in_any_collective_is_told() {
    Collective::EVERY.into_iter().for_each(a_death_in);
}

/// An operator that panics inside an operation, on the PE's thread or its helper's.
#[test]
fn an_operator_may_panic() {
    for helpers in [false, true] {
        let outcome = alone(LIMIT, move || {
            let pes = if helpers { pes_of(3).helper_threads() } else { pes_of(3) };
            pes.run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let add = move |a: u64, b: u64| {
                    assert!(me != Rank(1), "no sums here");
                    a.wrapping_add(b)
                };
                let direct = Candidate::new("direct").with("block_bytes", 4096);
                world.force(Collective::Reduce, Some(direct));
                let request = world.start_reduce(vec![1; 3000], add, Rank(1))?;
                request.wait()?;
                world.barrier()
            })
        });
        let error = outcome.expect_err("an operator that panics");
        let text = error.to_string();
        assert!(text.contains("PE 1 failed: it panicked: no sums here"), "{text}");
    }
}

/// Whoever catches the panic and goes on has failed the job all the same: its peers wait for what
/// will never come.
#[test]
fn a_panic_that_is_caught_fails_the_job() {
    let error = fails(2, |world| {
        let me = world.rank();
        let add = move |a: u64, b: u64| {
            assert!(me != Rank(1), "no sums here");
            a.wrapping_add(b)
        };
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let request = world.start_all_reduce(vec![1; 10], add)?;
            request.wait().map(drop)
        }));
        match caught {
            Ok(result) => result.and_then(|()| world.barrier()),
            Err(_) => world.barrier(),
        }
    });
    let named = matches!(&error, Error::PeFailed { rank: Rank(1), reason }
        if reason.contains("no sums"));
    assert!(named, "{error}");
}

/// Runs a program that must fail, and says how; soon.
fn fails(
    pes: u32,
    program: impl Fn(Team<'_>) -> Result<()> + Send + std::marker::Sync + 'static,
) -> Error {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let outcome = pes_of(pes).run(|pe| program(pe.world()));
        assert!(since.elapsed() < SOON, "heard after {:?}", since.elapsed());
        outcome.expect_err("a job that must fail")
    })
}

#[test]
fn calls_that_do_not_match_are_told() {
    let odd = |world: Team<'_>| world.rank() == Rank(1);
    for polls in [false, true] {
        let error = fails(3, move |world| {
            let data = vec![1_u64; 2];
            let mut request = if odd(world) {
                world.start_all_reduce(data, Sum)?
            } else {
                world.start_broadcast(data, Rank(0))?
            };
            while polls && !request.test()? {}
            request.wait().and_then(|_| world.barrier())
        });
        let text = error.to_string();
        assert!(text.contains("PE 1 called start all_reduce(16 bytes"), "{text}");
        assert!(text.contains("called start broadcast(16 bytes"), "{text}");
    }
    // One waits in the call, and one does not.
    let error = fails(
        2,
        move |world| {
            if odd(world) { world.barrier() } else { world.start_barrier()?.wait() }
        },
    );
    let text = error.to_string();
    assert!(text.contains("PE 0 called start barrier()"), "{text}");
    assert!(text.contains("PE 1 called barrier()"), "{text}");
    // One makes none, and the other leaves its own to the end.
    let error =
        fails(2, move |world| if odd(world) { Ok(()) } else { world.start_barrier().map(drop) });
    let finished = matches!(&error, Error::Mismatched(Failure::Finished { rank: Rank(1), .. }));
    assert!(finished, "{error}");
}

#[test]
fn requests_that_wait_for_each_other() {
    let error = fails(2, |world| {
        let (one, other) = (world.cartesian(1)?.row, world.cartesian(1)?.row);
        if world.rank() == Rank(0) {
            one.start_all_reduce(vec![1], Sum)?.wait()?;
        }
        other.start_barrier()?.wait()
    });
    let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
    let texts = format!("{} {}", one.1, other.1);
    assert!(texts.contains("start all_reduce") && texts.contains("start barrier"), "{error}");
    // In the same order they are started, and waited for in any.
    alone(LIMIT, || {
        pes_of(2).run(|pe| {
            let world = pe.world();
            let (one, other) = (world.cartesian(1)?.row, world.cartesian(1)?.row);
            let mut requests = [one.start_barrier()?, other.start_barrier()?];
            if world.rank() == Rank(0) {
                requests.reverse();
            }
            requests.into_iter().try_for_each(Request::wait)
        })
    })
    .unwrap();
}

/// PE 1 has to pass on what the others wait for, and computes until they have it.
#[test]
fn a_helper_moves_calls_on_while_its_pe_computes() {
    static OTHERS: AtomicUsize = AtomicUsize::new(0);
    for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
        alone(LIMIT, move || {
            OTHERS.store(0, Relaxed);
            let chain = Candidate::new("knomial").with("radix", 2);
            let pes = pes_of(4).waiting(waiting).force(Collective::Broadcast, chain);
            pes.helper_threads().run(|pe| {
                let world = pe.world();
                let request =
                    world.start_broadcast(vec![u64::from(world.rank().0); 10], Rank(3))?;
                // 3 is the root: its first child passes on to another.
                let computes = world.rank() == Rank(1);
                if computes {
                    let since = Instant::now();
                    while OTHERS.load(Acquire) < 3 {
                        assert!(since.elapsed() < LIMIT / 4, "nobody moves the call on");
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                assert_eq!(request.wait()?, [3; 10]);
                OTHERS.fetch_add(1, Release);
                Ok(())
            })
        })
        .unwrap();
    }
}

#[test]
fn planned_calls_are_started_many_times() {
    alone(LIMIT, || {
        pes_of(3).run(|pe| {
            let world = pe.world();
            let sums = world.plan_all_reduce::<u64, _>(40, Sum)?;
            let tables = world.plan_broadcast::<u64>(1000, Rank(2))?;
            let me = u64::from(world.rank().0);
            for round in 0..100 {
                let table = tables.start(vec![me + round; 1000])?;
                let sum = sums.start(vec![round; 40])?;
                assert_eq!(sum.wait()?, [3 * round; 40]);
                assert_eq!(table.wait()?[999], 2 + round);
            }
            let error = Error::Lengths { source_len: 39, target_len: 40 };
            assert_eq!(sums.start(vec![1; 39]).err(), Some(error));
            Ok(())
        })
    })
    .unwrap();
}

#[test]
fn symmetric_memory_is_kept_while_a_call_is_under_way() {
    alone(LIMIT, || {
        pes_of(3).run(|pe| {
            let world = pe.world();
            let me = u64::from(world.rank().0);
            for _ in 0..20 {
                let (source, target) = (world.symmetric::<u64>(300)?, world.symmetric(300)?);
                source.put(world.rank(), 0, &vec![me; 300])?;
                let sum =
                    world.start_symmetric(Collective::AllReduce, &source, &target, Sum, Rank(0))?;
                let other = world.symmetric::<u64>(300)?;
                other.store(299, me)?;
                let table =
                    world.start_symmetric(Collective::Broadcast, &other, &other, Sum, Rank(2))?;
                drop(source);
                sum.wait()?;
                table.wait()?;
                assert_eq!((target.load(299)?, other.load(299)?), (3, 2));
                world.barrier()?;
            }
            Ok(())
        })
    })
    .unwrap();
}

/// A team is freed once its calls are complete, whoever has waited for them.
#[test]
fn freeing_a_team_completes_its_calls() {
    alone(LIMIT, || {
        pes_of(4).run(|pe| {
            let team = pe.world().split(Some(pe.world().rank().0 % 2), 0)?.expect("a colour");
            let sum = team.start_all_reduce(vec![1; 3000], Sum)?;
            drop(team.start_barrier()?);
            team.free()?;
            assert_eq!(sum.wait()?, [2; 3000]);
            assert_eq!(team.start_barrier().err(), Some(Error::Freed));
            Ok(())
        })
    })
    .unwrap();
}
