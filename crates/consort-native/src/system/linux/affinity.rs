//! The processors that the calling thread may run on: `sched_getaffinity`, `sched_setaffinity`.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

pub(crate) type Mask = CpuSet;

pub(crate) fn current() -> Option<u32> {
    u32::try_from(sched_getcpu()).ok()
}

pub(crate) fn mask() -> io::Result<Mask> {
    Ok(sched_getaffinity(None)?)
}

pub(crate) fn set_mask(mask: &Mask) -> io::Result<()> {
    Ok(sched_setaffinity(None, mask)?)
}

pub(crate) fn allowed() -> Vec<u32> {
    let Ok(mask) = mask() else { return Vec::new() };
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
    set_mask(&mask)
}
