//! The rows of regions: empty regions, and regions in which each PE adds up a part of an array.
//!
//! If each PE has a core, the threads of rayon are bound to the cores of Consort's PEs. The system
//! places scoped threads, because binding would cost another system call for each thread.

use std::{hint::black_box, thread};

use anyhow::{Context, Result, ensure};
use consort::{Job, Pe, ops::Sum};
use consort_machine::affinity;
use rayon::{ThreadPool, ThreadPoolBuilder, iter::ParallelIterator, slice::ParallelSlice};

use super::row::{LEN, OPENMP, Row, Setting, Work};

const RAYON: Option<&str> = Some("rayon");
const STD: Option<&str> = Some("std");
const C: Option<&str> = Some(OPENMP);

/// Empty regions; the others are compared with the first row.
pub(super) const EMPTY: &[Row] = &[
    Row { work: Work::Empty, name: "Pool::run", peer: None, block_ns: pool },
    Row { work: Work::Empty, name: "JobBuilder::run", peer: None, block_ns: launch },
    Row { work: Work::Empty, name: "rayon broadcast", peer: RAYON, block_ns: rayon_broadcast },
    Row { work: Work::Empty, name: "std::thread::scope", peer: STD, block_ns: scope },
    Row { work: Work::Empty, name: "OpenMP parallel", peer: C, block_ns: openmp_parallel },
];

/// Sums; the others are compared with the first row.
pub(super) const SUM: &[Row] = &[
    Row { work: Work::Sum, name: "Pool::run_with, all_reduce", peer: None, block_ns: pool_reduces },
    Row { work: Work::Sum, name: "Pool::run_with, results", peer: None, block_ns: pool_returns },
    Row { work: Work::Sum, name: "rayon par_chunks, sum", peer: RAYON, block_ns: rayon_sum },
    Row { work: Work::Sum, name: "std::thread::scope", peer: STD, block_ns: scope_sum },
    Row { work: Work::Sum, name: "OpenMP reduction(+)", peer: C, block_ns: openmp_reduction },
    Row { work: Work::Sum, name: "one thread alone", peer: Some("one thread"), block_ns: alone },
];

fn pool(setting: &Setting<'_>) -> Result<f64> {
    setting.with_pool(|pool| {
        setting.regions_ns(|| {
            black_box(pool.run(|_| Ok(()))?);
            Ok(())
        })
    })
}

fn launch(setting: &Setting<'_>) -> Result<f64> {
    setting.regions_ns(|| {
        black_box(Job::threads(setting.pes as usize).pinned().run(|_| Ok(()))?);
        Ok(())
    })
}

fn rayon_broadcast(setting: &Setting<'_>) -> Result<f64> {
    with_rayon(setting, |pool| {
        setting.regions_ns(|| {
            black_box(pool.broadcast(|_| ()));
            Ok(())
        })
    })
}

fn scope(setting: &Setting<'_>) -> Result<f64> {
    setting.regions_ns(|| {
        thread::scope(|scope| {
            for _ in 0..setting.pes {
                scope.spawn(|| ());
            }
        });
        Ok(())
    })
}

fn openmp_parallel(setting: &Setting<'_>) -> Result<f64> {
    setting.openmp_ns("parallel")
}

fn pool_reduces(setting: &Setting<'_>) -> Result<f64> {
    let program = |pe: &Pe, part: &[f64]| pe.world().all_reduce(sum(part), Sum);
    setting
        .with_pool(|pool| sums_ns(setting, |data| Ok(pool.run_with(data.chunks(LEN), program)?[0])))
}

fn pool_returns(setting: &Setting<'_>) -> Result<f64> {
    setting.with_pool(|pool| {
        sums_ns(setting, |data| {
            let sums = pool.run_with(data.chunks(LEN), |_, part| Ok(sum(part)))?;
            Ok(sums.iter().sum())
        })
    })
}

fn rayon_sum(setting: &Setting<'_>) -> Result<f64> {
    with_rayon(setting, |pool| {
        sums_ns(setting, |data| Ok(pool.install(|| data.par_chunks(LEN).map(sum).sum())))
    })
}

fn scope_sum(setting: &Setting<'_>) -> Result<f64> {
    sums_ns(setting, |data| {
        thread::scope(|scope| {
            let parts = data.chunks(LEN).map(|part| scope.spawn(|| sum(part)));
            let parts: Vec<_> = parts.collect();
            parts.into_iter().map(|part| part.join().ok().context("a sum panicked")).sum()
        })
    })
}

fn openmp_reduction(setting: &Setting<'_>) -> Result<f64> {
    setting.openmp_ns("sum")
}

fn alone(setting: &Setting<'_>) -> Result<f64> {
    sums_ns(setting, |data| Ok(sum(data)))
}

/// Times a block of regions that add up the data.
fn sums_ns(setting: &Setting<'_>, all: impl Fn(&[f64]) -> Result<f64>) -> Result<f64> {
    setting.regions_ns(|| {
        let (found, len) = (all(black_box(&setting.data))?, setting.data.len());
        ensure!(found == len as f64, "the sum is {found}, not {len}");
        Ok(())
    })
}

/// Adds one number after the other, as C compilers add doubles.
fn sum(part: &[f64]) -> f64 {
    part.iter().sum()
}

/// Calls `timed` with the threads of rayon, which have ended when this returns.
fn with_rayon(
    setting: &Setting<'_>,
    timed: impl FnOnce(&ThreadPool) -> Result<f64>,
) -> Result<f64> {
    let bound = |thread: rayon::ThreadBuilder| {
        // A thread that cannot be bound runs where the system puts it.
        let _ = setting.cpu(thread.index()).map(affinity::pin);
        thread.run();
    };
    let threads = ThreadPoolBuilder::new().num_threads(setting.pes as usize);
    threads.build_scoped(bound, timed).context("rayon has no threads")?
}
