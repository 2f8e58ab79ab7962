//! Locks and messages on the native machine, with more PEs than cores.

use std::{sync::Arc, sync::atomic::Ordering, thread};

use consort_fabric::{Machine, Op, Rank, Until};
use consort_native::{Config, Endpoint, Failure, Job, NativeMachine, Origin, Waiting};

const PES: u32 = 4;

/// Runs `program` on every PE of a job and returns what they return, in the order of the ranks.
fn run<R: Send>(program: impl Fn(&Endpoint) -> R + Sync) -> Vec<R> {
    let waiting = Waiting::SpinYieldPark;
    let config = Config {
        pes: PES,
        waiting,
        cores: 2,
        heap_bytes: 0,
        memory: Origin::Private,
        first_step: 1,
        helpers: false,
        joining: None,
        name: String::new(),
    };
    let job = Job::new(config).expect("memory for four PEs");
    thread::scope(|scope| {
        let start = |rank| {
            let (job, program) = (Arc::clone(&job), &program);
            scope.spawn(move || {
                let endpoint = Endpoint::new(job, Rank(rank));
                let result = program(&endpoint);
                endpoint.finish().expect("no calls that do not match");
                result
            })
        };
        let handles: Vec<_> = (0..PES).map(start).collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    })
}

/// A ticket lock (Mellor-Crummey and Scott 1991): word 0 gives numbers, word 1 says whose turn it
/// is.
async fn with_lock<M: Machine>(m: &M, lock: &M::Line, section: impl AsyncFnOnce()) -> Op {
    let mine = m.fetch_add(&lock[0], 1, Ordering::Relaxed).await;
    m.wait_until(&lock[1], Until::Equals(mine)).await?;
    section().await;
    m.store(&lock[1], mine + 1, Ordering::Release).await;
    Ok(())
}

#[test]
fn a_lock_excludes() {
    let lock = NativeMachine::line();
    let counter = NativeMachine::line();
    run(|endpoint| {
        let machine = endpoint.machine();
        for _ in 0..500 {
            let increment = async || {
                let before = machine.load(&counter[0], Ordering::Relaxed).await;
                machine.pause().await;
                machine.store(&counter[0], before + 1, Ordering::Relaxed).await;
            };
            let done = endpoint.block_on_machine(with_lock(&machine, &lock, increment));
            assert_eq!(done, Ok(()));
        }
    });
    assert_eq!(counter[0].load(Ordering::Relaxed), 500 * u64::from(PES));
}

#[test]
fn words_do_what_they_should() {
    run(|endpoint| {
        let machine = endpoint.machine();
        let line = NativeMachine::line();
        endpoint.block_on_machine(async {
            machine.stream(&line[2], 5).await;
            machine.fence(Ordering::Release).await;
            assert_eq!(machine.compare_exchange(&line[2], 5, 6).await, Ok(5));
            assert_eq!(machine.compare_exchange(&line[2], 5, 7).await, Err(6));
            assert_eq!(machine.swap(&line[2], 8, Ordering::AcqRel).await, 6);
            assert_eq!(machine.load(&line[2], Ordering::Acquire).await, 8);
        });
        let before = machine.now_ns();
        assert!(machine.now_ns() >= before);
        assert_eq!((machine.rank(), machine.size()), (endpoint.rank(), PES));
    });
}

#[test]
fn messages_arrive_once_and_in_order_of_each_sender() {
    const MESSAGES: u64 = 300; // several times what a queue holds
    run(|endpoint| {
        let machine = endpoint.machine();
        endpoint.block_on_machine(async {
            if endpoint.rank() != Rank(0) {
                for number in 0..MESSAGES {
                    let message = [u64::from(endpoint.rank().0), number];
                    assert_eq!(machine.send(Rank(0), &message).await, Ok(()));
                }
                return;
            }
            let mut next = [0; PES as usize];
            for _ in 0..MESSAGES * u64::from(PES - 1) {
                let [from, number, rest @ ..] = machine.receive().await.expect("nobody fails");
                let from = usize::try_from(from).expect("a rank");
                assert_eq!((number, rest), (next[from], [0; 4]));
                next[from] += 1;
            }
            assert!(machine.inbox_is_empty().await);
        });
    });
}

#[test]
fn a_wait_for_nobody_fails() {
    let results = run(|endpoint| {
        let machine = endpoint.machine();
        let waits = endpoint.rank() == Rank(2);
        let waited = waits.then(|| endpoint.block_on_machine(machine.receive()));
        (waited, endpoint.job().failure())
    });
    assert!(matches!(results[2], (Some(Err(_)), Some(Failure::Finished { waiting: Rank(2), .. }))));
}
