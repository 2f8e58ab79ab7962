//! Functions that leave a job, a pool or a PE behind.

use std::mem::ManuallyDrop;

use consort::{Job, JobBuilder, Pe, Pool, Result, ops::Sum};

fn pes() -> JobBuilder {
    Job::threads(2).heap_bytes(1 << 16)
}

/// Makes a call. Returns the number of PEs.
fn call(pe: &Pe) -> Result<u64> {
    pe.world().all_reduce(1, Sum)
}

/// Runs a job that ends. Returns 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn job() -> u64 {
    pes().run(call).expect("a job")[0]
}

/// Makes nonblocking calls, with help of the library's threads. Returns 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn helpers() -> u64 {
    let program = |pe: &Pe| Ok(pe.world().start(vec![1_u64]).all_reduce(Sum)?.wait()?[0]);
    pes().helper_threads().run(program).expect("a job")[0]
}

fn region(pool: &Pool) -> u64 {
    pool.run(call).expect("a region")[0]
}

/// Runs a region of a pool that ends. Returns 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pool() -> u64 {
    region(&pes().pool().expect("a pool"))
}

/// Runs a region of a pool that nobody ends. Returns 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kept_pool() -> u64 {
    region(&ManuallyDrop::new(pes().pool().expect("a pool")))
}

/// Joins a job, and does not leave it before the thread ends. Returns 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn joined() -> u64 {
    let job = Job::threads(1).heap_bytes(1 << 16).build().expect("a job");
    let _kept = ManuallyDrop::new(job.join().expect("a PE"));
    2
}
