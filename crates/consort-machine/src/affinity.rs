//! Which logical processors a thread may run on, and binding it to one of them.
//!
//! Only Linux has calls for that; other systems have none, or only hints: there every processor
//! counts as allowed, and binding reports [`Unsupported`](std::io::ErrorKind::Unsupported), for the
//! caller to accept or not.

use std::{fmt, io, marker::PhantomData};

use crate::system::affinity as system;

/// The number of a logical processor in the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {}", self.0)
    }
}

/// The processors that the calling thread may run on, in ascending order; never empty.
#[must_use]
pub fn allowed() -> Vec<CpuId> {
    processors(system::mask())
}

/// The processors that the process may run on, in ascending order; never empty. Those of its first
/// thread, even if the calling thread is pinned.
#[must_use]
pub fn allowed_to_process() -> Vec<CpuId> {
    processors(system::mask_of_process())
}

/// The processors that the process may run on, and those that the one that has started it may: a
/// launcher that binds processes does not bind itself. In ascending order; never empty.
pub fn allowed_to_launcher() -> Vec<CpuId> {
    let mut cpus = allowed_to_process();
    cpus.extend(system::allowed(system::mask_of_parent()).into_iter().map(CpuId));
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn processors(mask: io::Result<system::Mask>) -> Vec<CpuId> {
    let mut cpus: Vec<CpuId> = system::allowed(mask).into_iter().map(CpuId).collect();
    if cpus.is_empty() {
        // The call failed, or the mask is too small for this machine: number processors from zero.
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        cpus = (0..count).filter_map(|cpu| u32::try_from(cpu).ok()).map(CpuId).collect();
    }
    cpus
}

/// Binds the calling thread to `cpu`, until it is bound again.
///
/// # Errors
/// When the processor does not exist, is not allowed, or the system cannot bind threads.
pub fn pin(cpu: CpuId) -> io::Result<()> {
    system::pin(cpu.0)
}

/// Moves the calling thread to `cpu`. The system may move it on to any processor of the process,
/// also if the thread was pinned.
///
/// # Errors
/// As for [`pin`].
pub fn move_to(cpu: CpuId) -> io::Result<()> {
    let of_process = system::mask_of_process()?;
    system::pin(cpu.0)?;
    system::set_mask(&of_process)
}

/// The processor that the calling thread runs on; `None` if the system does not say.
#[must_use]
pub fn current() -> Option<CpuId> {
    system::current().map(CpuId)
}

/// Binds the thread that makes it to one processor; dropping it restores the old affinity mask.
#[derive(Debug)]
pub struct Pinned {
    before: system::Mask,
    /// Not `Send`: the mask belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Pinned {
    /// Binds the calling thread to `cpu` while the value lives.
    ///
    /// # Errors
    /// As for [`pin`]; the thread's mask is then unchanged.
    pub fn new(cpu: CpuId) -> io::Result<Pinned> {
        let before = system::mask()?;
        system::pin(cpu.0)?;
        Ok(Pinned { before, _not_send: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It fails only when all the old processors were taken away meanwhile (hot unplugging, a
        // narrowed cpuset); the kernel has then moved the thread to others already.
        let _ = system::set_mask(&self.before);
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use super::*;

    #[test]
    fn pinned_restores_the_mask() {
        let before = allowed();
        let last = *before.last().unwrap();
        {
            let _pinned = Pinned::new(last).unwrap();
            assert_eq!(allowed(), [last]);
        }
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_thread_that_moves_may_run_anywhere_also_if_it_was_pinned() {
        let all = allowed_to_process();
        for &cpu in &all {
            pin(cpu).unwrap();
            assert_eq!(allowed_to_process(), all);
            move_to(cpu).unwrap();
            assert!(current().is_some_and(|cpu| all.contains(&cpu)));
            assert_eq!(allowed(), all);
        }
    }

    #[test]
    fn pin_binds_the_calling_thread_alone() {
        let before = allowed();
        let first = before[0];
        std::thread::spawn(move || {
            pin(first).unwrap();
            assert_eq!(allowed(), [first]);
        })
        .join()
        .unwrap();
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        let before = allowed();
        assert!(pin(CpuId(u32::MAX)).is_err());
        assert!(Pinned::new(CpuId(1023)).is_err() || before.contains(&CpuId(1023)));
        if let Err(error) = pin(CpuId(1023)) {
            let error = error.to_string();
            assert!(error.starts_with("cpu 1023: sched_setaffinity: "), "{error}");
            assert!(error.contains("Cpus_allowed_list"), "{error}");
        }
        assert_eq!(allowed(), before);
    }
}
