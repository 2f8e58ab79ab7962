//! The processors that the calling thread may run on: `sched_getaffinity`, `sched_setaffinity`.

use std::io;

use consort_fabric::advice::of_call;
use rustix::{
    io::Errno,
    thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity},
};

pub(crate) type Mask = CpuSet;

pub(crate) fn current() -> Option<u32> {
    u32::try_from(sched_getcpu()).ok()
}

/// The mask of the calling thread.
pub(crate) fn mask() -> io::Result<Mask> {
    sched_getaffinity(None).map_err(not_looked_up)
}

/// The mask of the process: that of its first thread.
pub(crate) fn mask_of_process() -> io::Result<Mask> {
    let process = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    sched_getaffinity(process).map_err(not_looked_up)
}

/// The mask of the process that has started this one.
pub(crate) fn mask_of_parent() -> io::Result<Mask> {
    sched_getaffinity(rustix::process::getppid()).map_err(not_looked_up)
}

pub(crate) fn set_mask(mask: &Mask) -> io::Result<()> {
    sched_setaffinity(None, mask).map_err(|error| of_call("sched_setaffinity", &error.into()))
}

fn not_looked_up(error: Errno) -> io::Error {
    of_call("sched_getaffinity", &error.into())
}

/// The processors in a mask; none if it cannot be read.
pub(crate) fn allowed(mask: io::Result<Mask>) -> Vec<u32> {
    let Ok(mask) = mask else { return Vec::new() };
    let all = (0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu));
    all.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    let index = cpu as usize;
    if index >= CpuSet::MAX_CPU {
        let message = format!("cpu {cpu} is past the last that a mask holds");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut mask = CpuSet::new();
    mask.set(index);
    set_mask(&mask).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            let why = "it is offline, or `taskset` or a control group excludes it: see \
                       `Cpus_allowed_list` in /proc/self/status";
            io::Error::new(error.kind(), format!("cpu {cpu}: {error}: {why}"))
        }
        kind => io::Error::new(kind, format!("cpu {cpu}: {error}")),
    })
}
