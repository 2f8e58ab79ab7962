//! A job on cores that others use too, and the processor time of long waits.
//!
//! Each PE repeatedly computes for some time and calls a barrier: alone, next to a second job that
//! does the same, and next to a thread that never waits. Threads with the standard library's
//! barrier do the same, in turn. If a library takes much longer than these threads, it uses more
//! than its share of the cores, or gives away its own share.

use std::{
    future::Future,
    hint::black_box,
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use consort::{Job, Rank, Symmetric, Team, symmetric::Until};
use consort_fabric::statistics::Summary;
use consort_machine::usage::processor_time;

use crate::{
    harness::{Figure, Mode},
    page::Page,
    units::{counted, time},
};

/// The computing time between two barriers.
const WORK: [Duration; 3] =
    [Duration::from_micros(10), Duration::from_micros(100), Duration::from_millis(1)];
/// The longest and the shortest computing time of a job.
const JOB: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(4)];
/// The longest and the shortest wait.
const WAIT: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(50)];
/// The number of steps in the timed computation.
const STEPS: u128 = 3_000_000;
/// The smallest number of jobs of each kind, if there is time.
const FEWEST: u32 = 3;

/// The other work on the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreLoad {
    Nobody,
    Job,
    Busy,
}

impl CoreLoad {
    const EVERY: [Self; 3] = [Self::Nobody, Self::Job, Self::Busy];

    const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "alone",
            Self::Job => "two jobs",
            Self::Busy => "next to a busy thread",
        }
    }
}

/// Rounds of computation and a barrier.
struct Rounds {
    work: Duration,
    company: CoreLoad,
    /// The nanoseconds per round with this library and with the standard one, and their ratio.
    ours: Summary,
    std: Summary,
    ratio: f64,
}

/// The results.
pub struct Sharing {
    pes: u32,
    rounds: Vec<Rounds>,
    wait: Duration,
    /// For each kind of wait, the processor time of all threads in nanoseconds.
    waits: Vec<(&'static str, f64)>,
}

/// Measures jobs of `pes` PEs, until `stop` is set.
///
/// # Errors
/// If a job cannot be launched, or the system does not report the time of threads.
pub fn measure(pes: u32, budget: Duration, stop: &AtomicBool) -> Result<Sharing> {
    let begun = Instant::now();
    let taken = calibrate();
    // Relaxed, here and below: the flag publishes no other data.
    let goes_on = || !stop.load(Relaxed);
    let wait = (budget / 12).clamp(WAIT[1], WAIT[0]);
    let waits = WAITS.into_iter().take_while(|_| goes_on());
    let waits = waits.map(|(name, waits)| Ok((name, wait_ns(waits, wait)?)));
    let waits = waits.collect::<Result<Vec<_>>>()?;
    let budget = budget.saturating_sub(begun.elapsed());
    let cells = WORK.len() * CoreLoad::EVERY.len();
    let each = budget / u32::try_from(cells).unwrap_or(u32::MAX);
    let (cells_begun, mut rounds) = (Instant::now(), Vec::new());
    for work in WORK {
        let steps = u64::try_from(STEPS * work.as_nanos() / taken.as_nanos().max(1))?;
        // There are two libraries, and jobs in company take longer.
        let job = (each / (8 * FEWEST)).clamp(JOB[1], JOB[0]);
        let count = u32::try_from((job.as_nanos() / work.as_nanos()).max(1))?;
        let measured = BarrierLoop { pes, count, steps };
        for company in CoreLoad::EVERY.into_iter().take_while(|_| goes_on()) {
            let (cell, mut ours, mut std) = (Instant::now(), Vec::new(), Vec::new());
            loop {
                ours.push(while_loaded(company, || measured.ours())?);
                std.push(while_loaded(company, || measured.std())?);
                let enough = ours.len() >= FEWEST as usize || cells_begun.elapsed() >= budget;
                if !goes_on() || enough && cell.elapsed() >= each {
                    break;
                }
            }
            let [ours, std] = [ours, std].map(|all| Summary::of(&all));
            rounds.push(Rounds { work, company, ours, std, ratio: ours.median / std.median });
        }
    }
    Ok(Sharing { pes, rounds, wait, waits })
}

/// Returns the time of a computation of [`STEPS`].
fn calibrate() -> Duration {
    let begun = Instant::now();
    (0..STEPS / 1000).for_each(|_| compute(1000));
    begun.elapsed()
}

#[inline(never)]
fn compute(steps: u64) {
    let mut value = 1_u64;
    for step in 0..steps {
        value = black_box(value.wrapping_mul(31).wrapping_add(step));
    }
}

/// Barriers with work between them.
#[derive(Clone, Copy)]
struct BarrierLoop {
    pes: u32,
    count: u32,
    steps: u64,
}

impl BarrierLoop {
    /// Returns the nanoseconds per round with this library.
    fn ours(self) -> Result<f64> {
        let begun = Instant::now();
        Job::threads(self.pes as usize).run(|pe| {
            let world = pe.world();
            (0..self.count).try_for_each(|_| {
                compute(self.steps);
                world.barrier()
            })
        })?;
        Ok(self.round_ns(begun))
    }

    /// Returns the same with the standard library.
    fn std(self) -> Result<f64> {
        let begun = Instant::now();
        let barrier = Barrier::new(self.pes as usize);
        thread::scope(|scope| {
            for _ in 0..self.pes {
                scope.spawn(|| {
                    for _ in 0..self.count {
                        compute(self.steps);
                        barrier.wait();
                    }
                });
            }
        });
        Ok(self.round_ns(begun))
    }

    fn round_ns(self, begun: Instant) -> f64 {
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(self.count)
    }
}

/// Runs a job under this load. For two jobs, returns the mean.
fn while_loaded(company: CoreLoad, job: impl Fn() -> Result<f64> + Sync) -> Result<f64> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| match company {
        CoreLoad::Nobody => job(),
        CoreLoad::Job => {
            let other = scope.spawn(&job);
            let one = job()?;
            Ok(f64::midpoint(one, other.join().expect("a job returns its errors")?))
        }
        CoreLoad::Busy => {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    compute(1000);
                }
            });
            let done = job();
            is_over.store(true, Relaxed);
            done
        }
    })
}

type Wait = fn(&Team, &Symmetric<u64>) -> consort::Result<()>;

/// The waits of PE 0 for PE 1, which arrives late.
const WAITS: [(&str, Wait); 3] = [
    ("Team::barrier", |world, _| world.barrier()),
    ("Symmetric::wait_until", |world, word| {
        let late = world.rank() == Rank(1);
        if late {
            word.put(Rank(0), 0, &[1])
        } else {
            word.wait_until(0, Until::Equals(1)).map(drop)
        }
    }),
    ("an awaited request", |world, _| block_on(world.start_barrier()?)),
];

/// Returns the processor time of all threads during a wait of this length.
fn wait_ns(wait: Wait, length: Duration) -> Result<f64> {
    let spent = Job::threads(2).run(|pe| {
        let world = pe.world();
        let word = world.symmetric(1)?;
        let before = processor_time();
        if world.rank() == Rank(1) {
            thread::sleep(length);
        }
        wait(world, &word)?;
        let spent =
            before.zip(processor_time()).map(|(before, after)| after.saturating_sub(before));
        Ok(spent.map(|spent| spent.as_secs_f64() * 1e9))
    })?;
    spent[0].context("the system does not report the processor time of threads")
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let (waker, mut future) = (Waker::from(Arc::new(Unparks(thread::current()))), pin!(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

impl Sharing {
    /// Returns a figure for each library and company, and for each wait.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let of = |rounds: &Rounds| {
            let name = format!("rounds of {}, {}", us(rounds.work), rounds.company.name());
            [(None, &rounds.ours), (Some("std::sync::Barrier".to_owned()), &rounds.std)].map(
                |(peer, times)| {
                    let algorithm = Some(name.clone());
                    let figure = Figure::of("sharing", self.pes, Mode::Throughput);
                    Figure { algorithm, peer, ..figure }.with(times)
                },
            )
        };
        let of_wait = |&(name, ns): &(&str, f64)| Figure {
            algorithm: Some(format!("processor time of a wait, {name}")),
            median_ns: Some(ns),
            reps: 1,
            ..Figure::of("sharing", 2, Mode::Latency)
        };
        self.rounds.iter().flat_map(of).chain(self.waits.iter().map(of_wait)).collect()
    }

    /// Adds the tables to a page.
    pub fn show(&self, page: &mut Page) {
        page.paragraph(format!(
            "{}: rounds of computation and a barrier, with Consort and with threads and the \
             barrier of std",
            counted(self.pes, "PE")
        ));
        let row = |rounds: &Rounds| {
            let Rounds { work, company, ours, std, ratio } = rounds;
            let round = |times: &Summary| time(times.median);
            vec![
                us(*work),
                company.name().to_owned(),
                ours.count.to_string(),
                round(ours),
                round(std),
                format!("{ratio:.2}"),
            ]
        };
        let header = vec!["work", "company", "jobs", "Consort", "std", "ratio"];
        page.table(header, self.rounds.iter().map(row).collect(), 2..6);
        page.lines("\n");
        page.paragraph(format!(
            "A wait of {} of one of 2 PEs: processor time of all threads",
            us(self.wait)
        ));
        let row = |&(name, ns): &(&str, f64)| {
            let share = 100.0 * ns / (self.wait.as_secs_f64() * 1e9);
            vec![name.to_owned(), time(ns), format!("{share:.1}")]
        };
        page.table(vec!["wait", "time", "% of a core"], self.waits.iter().map(row).collect(), 1..3);
    }
}

fn us(work: Duration) -> String {
    time(work.as_secs_f64() * 1e9)
}
