//! The rows of barriers, all on the threads of a pool, in one region.
//!
//! The time of a block is that of the slowest thread. The calling thread gets its own handle on a
//! barrier, for libraries that need one.

use std::{
    sync::{self, Arc},
    time::Instant,
};

use anyhow::Result;

use super::row::{OPENMP, Row, Setting, Work};

/// Barriers; the others are compared with the first row.
pub(super) const BARRIER: &[Row] = &[
    Row { work: Work::Barrier, name: "Team::barrier", peer: None, block_ns: team },
    Row { work: Work::Barrier, name: "Barrier, joined", peer: None, block_ns: member },
    Row { work: Work::Barrier, name: "Barrier::wait", peer: None, block_ns: wait },
    Row { work: Work::Barrier, name: "std::sync::Barrier", peer: Some("std"), block_ns: std },
    Row { work: Work::Barrier, name: "hurdles::Barrier", peer: Some("hurdles"), block_ns: hurdles },
    Row {
        work: Work::Barrier,
        name: "OpenMP barrier",
        peer: Some(OPENMP),
        block_ns: openmp_barrier,
    },
];

fn team(setting: &Setting<'_>) -> Result<f64> {
    setting.with_pool(|pool| {
        setting.block_ns(|count| {
            let times = pool.run(|pe| {
                let world = pe.world();
                world.barrier()?;
                let begun = Instant::now();
                (0..count).try_for_each(|_| world.barrier())?;
                Ok(begun.elapsed())
            })?;
            Ok(times.into_iter().max().unwrap_or_default())
        })
    })
}

fn member(setting: &Setting<'_>) -> Result<f64> {
    let barrier = consort::Barrier::new(setting.pes as usize);
    setting.with_pool(|pool| {
        setting.block_ns(|count| {
            let times = pool.run(|_| {
                let member = barrier.join()?;
                member.wait()?;
                let begun = Instant::now();
                (0..count).try_for_each(|_| member.wait().map(drop))?;
                Ok(begun.elapsed())
            })?;
            Ok(times.into_iter().max().unwrap_or_default())
        })
    })
}

fn wait(setting: &Setting<'_>) -> Result<f64> {
    let barrier = Arc::new(consort::Barrier::new(setting.pes as usize));
    barriers_ns(setting, || {
        let barrier = Arc::clone(&barrier);
        move || barrier.wait()
    })
}

fn std(setting: &Setting<'_>) -> Result<f64> {
    let barrier = Arc::new(sync::Barrier::new(setting.pes as usize));
    barriers_ns(setting, || {
        let barrier = Arc::clone(&barrier);
        move || barrier.wait()
    })
}

fn hurdles(setting: &Setting<'_>) -> Result<f64> {
    let barrier = hurdles::Barrier::new(setting.pes as usize);
    barriers_ns(setting, || {
        let mut barrier = barrier.clone();
        move || barrier.wait()
    })
}

fn openmp_barrier(setting: &Setting<'_>) -> Result<f64> {
    setting.openmp_ns("barrier")
}

/// Times a block of barriers; `handle` creates a thread's handle.
fn barriers_ns<R, H>(setting: &Setting<'_>, handle: impl Fn() -> H) -> Result<f64>
where
    H: FnMut() -> R + Send,
{
    let mut handles: Vec<H> = (0..setting.pes).map(|_| handle()).collect();
    setting.with_pool(|pool| {
        setting.block_ns(|count| {
            let times = pool.run_with(&mut handles, |_, wait| {
                wait();
                let begun = Instant::now();
                for _ in 0..count {
                    wait();
                }
                Ok(begun.elapsed())
            })?;
            Ok(times.into_iter().max().unwrap_or_default())
        })
    })
}
