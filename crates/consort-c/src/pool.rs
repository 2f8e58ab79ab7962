//! Pools of PEs, and their parallel regions.

use std::{
    ffi::{c_int, c_void},
    fmt, ptr,
};

use consort::{Error, Pe, Pool, Rank};

use crate::{
    arguments::{Options, configured, destroy, give, object},
    status::{Code, Fault, last_message, status_of},
    team::TeamHandle,
};

/// A function of the program that all PEs run.
pub type Region = extern "C-unwind" fn(world: *mut TeamHandle, data: *mut c_void) -> c_int;

/// The program's data of a region.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: this library only passes the address to the program, whose threads share the data.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    fn address(self) -> *mut c_void {
        self.0
    }
}

/// Why a PE leaves a region without success.
enum Stop {
    /// The region's function returned this.
    Returned {
        rank: Rank,
        value: c_int,
        last: Option<String>,
    },
    Failed(Error),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned { value, last: None, .. } => write!(f, "its function returned {value}"),
            Self::Returned { value, last: Some(last), .. } => {
                write!(f, "its function returned {value}, the code of its last error: {last}")
            }
            Self::Failed(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Returned { rank, .. } => {
                Self::new(Code::PeFailed, format_args!("PE {rank} failed: {stop}"))
            }
            Stop::Failed(error) => error.into(),
        }
    }
}

/// Creates a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_pool_create(
    threads: c_int,
    options: *const Options,
    pool: *mut *mut Pool,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let make = || Ok(Some(unsafe { configured(threads, options) }?.pool()?));
    // SAFETY: guaranteed by the caller.
    status_of("consort_pool_create", || unsafe { give(pool, "pool", make) })
}

/// Runs a region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_pool_run(
    pool: *const Pool,
    region: Option<Region>,
    data: *mut c_void,
) -> c_int {
    let data = Data(data);
    status_of("consort_pool_run", || {
        // SAFETY: guaranteed by the caller.
        let pool = unsafe { object(pool, "pool") }?;
        let region = region.ok_or_else(|| Fault::argument("argument region is null"))?;
        let run = |pe: &Pe| {
            let world = TeamHandle::new(pe.world().clone());
            match region(ptr::from_ref(&world).cast_mut(), data.address()) {
                0 => Ok(()),
                value => {
                    let (rank, last) = (pe.world().rank(), last_message(value));
                    Err(Stop::Returned { rank, value, last })
                }
            }
        };
        pool.try_run(run)?;
        Ok(())
    })
}

/// Returns the number of PEs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_pool_size(pool: *const Pool) -> c_int {
    // SAFETY: guaranteed by the caller.
    let size = unsafe { object(pool, "pool") }.map(Pool::size);
    size.ok().and_then(|size| c_int::try_from(size).ok()).unwrap_or(-1)
}

/// Ends a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_pool_destroy(pool: *mut Pool) {
    status_of("consort_pool_destroy", || {
        // SAFETY: guaranteed by the caller.
        unsafe { destroy(pool) };
        Ok(())
    });
}
