//! Reports which logical processors a thread may run on, and binds threads to processors.
//!
//! Only Linux has the system calls. On other systems every processor counts as allowed, and binding
//! returns [`Unsupported`](std::io::ErrorKind::Unsupported). The caller may ignore that error.

use std::{fmt, io, marker::PhantomData};

use crate::system::affinity as system;

/// The operating system's number of a logical processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {}", self.0)
    }
}

/// Returns the processors that the calling thread may run on, in ascending order; never empty.
#[must_use]
pub fn allowed() -> Vec<CpuId> {
    processors(system::mask())
}

/// Returns the first processor that the calling thread may run on and that `accepts` holds for.
/// Allocates nothing.
pub fn find_allowed(accepts: impl Fn(CpuId) -> bool) -> Option<CpuId> {
    system::allowed(system::mask()).map(CpuId).find(|&cpu| accepts(cpu))
}

/// Returns the processors that the process may run on, in ascending order; never empty. These are
/// the processors of its first thread, even if the calling thread is pinned.
#[must_use]
pub fn allowed_to_process() -> Vec<CpuId> {
    processors(system::mask_of_process())
}

/// Returns the processors that this process or its parent may run on, in ascending order; never
/// empty. A launcher that binds its processes does not bind itself.
pub fn allowed_to_launcher() -> Vec<CpuId> {
    let mut cpus = allowed_to_process();
    cpus.extend(system::allowed(system::mask_of_parent()).map(CpuId));
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn processors(mask: io::Result<system::Mask>) -> Vec<CpuId> {
    let mut cpus: Vec<CpuId> = system::allowed(mask).map(CpuId).collect();
    if cpus.is_empty() {
        // The call failed, or the mask is too small for this machine: number processors from zero.
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        cpus = (0..count).filter_map(|cpu| u32::try_from(cpu).ok()).map(CpuId).collect();
    }
    cpus
}

/// Binds the calling thread to `cpu` until it is bound again.
///
/// # Errors
/// When the processor does not exist or is not allowed, or the system cannot bind threads.
pub fn pin(cpu: CpuId) -> io::Result<()> {
    system::pin(cpu.0)
}

/// Moves the calling thread to `cpu`. The system may then move it to any processor of the process,
/// even if the thread was pinned before.
///
/// # Errors
/// As for [`pin`].
pub fn move_to(cpu: CpuId) -> io::Result<()> {
    let of_process = system::mask_of_process()?;
    system::pin(cpu.0)?;
    system::set_mask(&of_process)
}

/// Returns the processor that the calling thread runs on; `None` if the system does not report it.
#[must_use]
pub fn current() -> Option<CpuId> {
    system::current().map(CpuId)
}

/// Binds the thread that creates it to one processor; dropping it restores the old affinity mask.
#[derive(Debug)]
pub struct Pinned {
    before: system::Mask,
    /// Not `Send`: the mask belongs to the thread that created it.
    _not_send: PhantomData<*const ()>,
}

impl Pinned {
    /// Binds the calling thread to `cpu` until the value is dropped.
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
        // This fails only if all old processors were taken away in the meantime (hot unplugging, a
        // narrowed cpuset). The kernel has then already moved the thread to others.
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
    fn moved_thread_may_run_anywhere_even_if_pinned() {
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
    fn pinning_to_a_missing_processor_fails() {
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
