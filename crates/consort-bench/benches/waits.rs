//! Measures how long threads wait for the default locks and for those of std and parking_lot, and
//! how fast pairs of threads wake each other by condition variables.
//!
//! ```sh
//! cargo bench -p consort-bench -- 2,8,32
//! ```
//!
//! The argument lists the numbers of threads; with `--test`, there is one round with two threads.
//! Each thread takes a lock again and again, and increments a counter under the lock, or reads the
//! counter. Blocks of the three libraries follow each other, round after round. Each row shows the
//! medians over the rounds, and the longest operation of all rounds. The time of an operation
//! includes its wait, and the time in which the system runs other programs. `share` compares
//! threads in windows of 100 ms: the largest number of operations of a thread, divided by the
//! smallest. Clocks are read only in the blocks that measure operations.

use std::{
    array,
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

const BLOCK: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(100);

/// A counter under a lock.
trait Counter: Sync {
    fn read(&self) -> u64;
    fn increment(&self);
}

macro_rules! counters {
    ($($lock:ty: |$it:ident| $read:expr, $write:expr;)*) => {
        $(impl Counter for $lock {
            fn read(&self) -> u64 {
                let $it = self;
                *$read
            }

            fn increment(&self) {
                let $it = self;
                *$write += 1;
            }
        })*
    };
}

const POISONED: &str = "no thread panics";

counters! {
    std::sync::Mutex<u64>: |it| it.lock().expect(POISONED), it.lock().expect(POISONED);
    parking_lot::Mutex<u64>: |it| it.lock(), it.lock();
    consort_sync::Mutex<u64>: |it| it.lock(), it.lock();
    std::sync::RwLock<u64>: |it| it.read().expect(POISONED), it.write().expect(POISONED);
    parking_lot::RwLock<u64>: |it| it.read(), it.write();
    consort_sync::RwLock<u64>: |it| it.read(), it.write();
}

/// The operations of a thread, and its longest one in nanoseconds, on their own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Tally {
    operations: AtomicU64,
    longest_ns: AtomicU64,
}

/// One thread uses the counter until it has to stop. One in `writes` operations is an increment.
fn use_counter<C: Counter>(
    counter: &C,
    writes: u64,
    is_timed: bool,
    tally: &Tally,
    stop: &AtomicBool,
) {
    let mut operations = 0_u64;
    while !stop.load(Relaxed) {
        let begun = is_timed.then(Instant::now);
        // The hash varies the number of reads between two writes.
        if (operations.wrapping_mul(0x9e37_79b9) >> 16).is_multiple_of(writes) {
            counter.increment();
        } else {
            black_box(counter.read());
        }
        operations += 1;
        if let Some(begun) = begun {
            let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            tally.longest_ns.fetch_max(ns, Relaxed);
        }
        tally.operations.store(operations, Relaxed);
    }
}

/// The results of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    mops: f64,
    longest_ms: f64,
    share: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
fn block<C: Counter>(counter: &C, threads: usize, writes: u64, is_timed: bool) -> Block {
    let tallies: Vec<Tally> = (0..threads).map(|_| Tally::default()).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for tally in &tallies {
            scope.spawn(|| use_counter(counter, writes, is_timed, tally, &stop));
        }
        let count = || tallies.iter().map(|tally| tally.operations.load(Relaxed)).collect();
        let begun = Instant::now();
        let mut counts: Vec<u64> = count();
        let (first, mut shares) = (counts.iter().sum::<u64>(), Vec::new());
        while begun.elapsed() < BLOCK {
            thread::sleep(WINDOW);
            let now: Vec<u64> = count();
            let made = now.iter().zip(&counts).map(|(now, before)| (now - before).max(1));
            let (least, most) = made.fold((u64::MAX, 0), |(a, b), made| (a.min(made), b.max(made)));
            shares.push(most as f64 / least as f64);
            counts = now;
        }
        let operations = counts.iter().sum::<u64>() - first;
        let mops = operations as f64 / begun.elapsed().as_secs_f64() / 1e6;
        stop.store(true, Relaxed);
        let longest = tallies.iter().map(|tally| tally.longest_ns.load(Relaxed)).max();
        Block { mops, longest_ms: longest.unwrap_or(0) as f64 / 1e6, share: median(shares) }
    })
}

/// Measures a counter under the locks of three libraries.
fn compare<A: Counter, B: Counter, C: Counter>(
    what: &str,
    (std, parking_lot, ours): (&A, &B, &C),
    threads: usize,
    writes: u64,
    rounds: usize,
) {
    let round = |is_timed| {
        [
            block(std, threads, writes, is_timed),
            block(parking_lot, threads, writes, is_timed),
            block(ours, threads, writes, is_timed),
        ]
    };
    let (fast, timed): (Vec<_>, Vec<_>) = (0..rounds).map(|_| (round(false), round(true))).unzip();
    let ratios =
        fast.iter().map(|[std, parking_lot, ours]| ours.mops / std.mops.max(parking_lot.mops));
    let ratio = median(ratios.collect());
    let rows: [Block; 3] = array::from_fn(|library| Block {
        mops: median(fast.iter().map(|blocks| blocks[library].mops).collect()),
        longest_ms: timed.iter().map(|blocks| blocks[library].longest_ms).fold(0.0, f64::max),
        share: median(fast.iter().map(|blocks| blocks[library].share).collect()),
    });
    println!("{what}, {threads} threads: {ratio:.2} times the better of std and parking_lot");
    for (name, Block { mops, longest_ms, share }) in
        ["std", "parking_lot", "consort_sync"].into_iter().zip(rows)
    {
        println!(
            "  {name:12} {mops:6.1} Mops/s  longest operation {longest_ms:7.1} ms  share {share:.1}"
        );
    }
}

/// A number under a mutex, and for each of two threads a condition variable.
trait Table: Default + Sync {
    /// Waits until the number is `side`, replaces it by the other side, and notifies that thread.
    /// Returns early once `stop` is set.
    fn hit(&self, side: usize, stop: &AtomicBool);
}

macro_rules! tables {
    ($($name:ident: $mutex:ty, $condvar:ty, |$it:ident| $lock:expr,
       |$wakes:ident, $ball:ident| $wait:expr;)*) => {
        $(#[derive(Default)]
        struct $name($mutex, [$condvar; 2]);

        impl Table for $name {
            fn hit(&self, side: usize, stop: &AtomicBool) {
                let $it = &self.0;
                let mut $ball = $lock;
                while *$ball != side && !stop.load(Relaxed) {
                    let $wakes = &self.1[side];
                    $wait
                }
                *$ball = 1 - side;
                drop($ball);
                self.1[1 - side].notify_one();
            }
        })*
    };
}

tables! {
    Std: std::sync::Mutex<usize>, std::sync::Condvar, |it| it.lock().expect(POISONED),
        |wakes, ball| ball = wakes.wait(ball).expect(POISONED);
    ParkingLot: parking_lot::Mutex<usize>, parking_lot::Condvar, |it| it.lock(),
        |wakes, ball| wakes.wait(&mut ball);
    Ours: consort_sync::Mutex<usize>, consort_sync::Condvar, |it| it.lock(),
        |wakes, ball| wakes.wait(&mut ball);
}

/// Returns the thousands of hand-overs per second of some pairs of threads.
#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn ping_pong<T: Table>(pairs: usize) -> f64 {
    let (stop, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    let tables: Vec<T> = (0..pairs).map(|_| T::default()).collect();
    let begun = Instant::now();
    thread::scope(|scope| {
        for (table, side) in tables.iter().flat_map(|table| [(table, 0), (table, 1)]) {
            let (stop, hits) = (&stop, &hits);
            scope.spawn(move || {
                let mut mine = 0;
                while !stop.load(Relaxed) {
                    table.hit(side, stop);
                    mine += 1;
                }
                table.hit(side, stop); // the other side may wait, and would not see the end
                hits.fetch_add(mine, Relaxed);
            });
        }
        thread::sleep(BLOCK);
        stop.store(true, Relaxed);
    });
    hits.into_inner() as f64 / begun.elapsed().as_secs_f64() / 1e3
}

/// Measures condition variables of three libraries.
fn compare_ping_pong(pairs: usize, rounds: usize) {
    let round =
        || [ping_pong::<Std>(pairs), ping_pong::<ParkingLot>(pairs), ping_pong::<Ours>(pairs)];
    let rounds: Vec<_> = (0..rounds).map(|_| round()).collect();
    let [std, parking_lot, ours] =
        array::from_fn(|library| median(rounds.iter().map(|round| round[library]).collect()));
    println!("condition variables, {pairs} pairs of threads, thousands of hand-overs a second:");
    println!("  std {std:.0}, parking_lot {parking_lot:.0}, consort_sync {ours:.0}");
}

fn main() {
    // Cargo adds options, such as `--bench`.
    let (options, numbers): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let (usual, rounds) =
        if options.iter().any(|option| option == "--test") { ("2", 1) } else { ("2,8,32", 3) };
    let argument = numbers.first().map_or(usual, String::as_str);
    let threads = argument.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
    let Ok(threads) = threads else {
        eprintln!("invalid numbers of threads `{argument}`: use numbers, such as 2,8,32");
        std::process::exit(2);
    };
    for &threads in threads.iter().filter(|&&threads| threads > 0) {
        let mutexes = (&Default::default(), &Default::default(), &Default::default());
        compare::<std::sync::Mutex<u64>, parking_lot::Mutex<u64>, consort_sync::Mutex<u64>>(
            "mutex", mutexes, threads, 1, rounds,
        );
        for writes in [100, 10, 2] {
            let locks = (&Default::default(), &Default::default(), &Default::default());
            let what = format!("reader-writer lock, 1 write in {writes}");
            compare::<std::sync::RwLock<u64>, parking_lot::RwLock<u64>, consort_sync::RwLock<u64>>(
                &what, locks, threads, writes, rounds,
            );
        }
        compare_ping_pong(threads.div_ceil(2), rounds);
    }
}
