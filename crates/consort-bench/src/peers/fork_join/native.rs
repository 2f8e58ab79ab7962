//! Libraries in C and C++: compiled here once, and loaded by the processes that use them.
//!
//! A library of regions has the function `fork_join_run`, and a library of barriers
//! `fork_join_barrier` and `fork_join_wait`.
#![expect(unsafe_code, reason = "the functions of a loaded library are unsafe to call")]

use std::{
    ffi::{c_int, c_long, c_uint, c_void},
    path::Path,
    ptr::NonNull,
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result, ensure};
use libloading::Library as LoadedLibrary;

use super::threads::{ForkJoin, Part, ThreadPlacement};
use crate::peers::{barriers::Barrier, commands::CompiledProgram, loading};

/// The source of a library, and how it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NativeSource {
    /// GCC's OpenMP.
    Gomp,
    /// LLVM's OpenMP.
    Omp,
    /// The barrier of C++20.
    Cxx,
    /// Concurrency Kit.
    Ck,
}

/// A compiled library.
#[derive(Debug)]
pub struct NativeLibrary {
    source: NativeSource,
    program: CompiledProgram,
}

impl NativeSource {
    /// Returns the compiler, its options, the source, the name of the library, and the Debian
    /// packages that contain it.
    fn compilation(
        self,
    ) -> (&'static str, &'static [&'static str], &'static str, [&'static str; 2]) {
        let (openmp, cxx, ck) =
            (include_str!("openmp.c"), include_str!("barrier.cc"), include_str!("ck.c"));
        match self {
            Self::Gomp => ("gcc", &["-fopenmp"], openmp, ["OpenMP", "gcc"]),
            Self::Omp => ("clang", &["-fopenmp"], openmp, ["OpenMP", "clang and libomp-dev"]),
            Self::Cxx => ("g++", &["-x", "c++", "-std=c++20"], cxx, ["std::barrier", "g++"]),
            // The library comes before the source on the command line.
            Self::Ck => {
                let options = &["-Wl,--no-as-needed", "-lck"];
                ("gcc", options, ck, ["Concurrency Kit", "gcc and libck-dev"])
            }
        }
    }

    /// Compiles the library; `stop` interrupts this.
    ///
    /// # Errors
    /// When no compiler is installed, or the compiler does not find the library.
    pub(super) fn compile(self, stop: &AtomicBool) -> Result<NativeLibrary> {
        let (compiler, special, source, needs) = self.compilation();
        let options = [&["-O3", "-shared", "-fPIC", "-pthread"], special].concat();
        let program = CompiledProgram::by(compiler, &options, source, needs, stop)?;
        Ok(NativeLibrary { source: self, program })
    }
}

impl NativeLibrary {
    /// Returns whether this is the library of this source.
    pub(super) fn is(&self, source: NativeSource) -> bool {
        self.source == source
    }

    /// Returns the file to load.
    pub fn path(&self) -> &Path {
        &self.program.path
    }
}

/// Loads the library of a placement.
fn load(placement: &ThreadPlacement) -> Result<&'static LoadedLibrary> {
    let path = placement.compiled_library.as_ref().context("the library is not compiled")?;
    // SAFETY: the file was compiled from a source of this program; loading it runs only the
    // initialization of the libraries that it needs.
    unsafe { loading::load(path) }
}

type PartFn = unsafe extern "C" fn(*mut c_void, c_long, c_int);
type RunFn = unsafe extern "C" fn(c_int, c_long, PartFn, *mut c_void) -> c_int;

/// Calls a part for C. A panic ends the process, because it cannot pass through C.
///
/// # Safety
/// `context` points to a [`Part`].
unsafe extern "C" fn call_part(context: *mut c_void, step: c_long, rank: c_int) {
    // SAFETY: the caller ensures it.
    let part = unsafe { *context.cast_const().cast::<Part<'_>>() };
    part(usize::try_from(step).unwrap_or(0), usize::try_from(rank).unwrap_or(0));
}

/// The threads of OpenMP.
pub(super) struct OpenMpThreads {
    run: RunFn,
    threads: usize,
}

impl OpenMpThreads {
    pub(super) fn new(placement: &ThreadPlacement) -> Result<Self> {
        // SAFETY: `openmp.c` defines the function with these arguments.
        let run = unsafe { load(placement)?.get::<RunFn>(b"fork_join_run")? };
        let mut threads = Self { run: *run, threads: placement.threads };
        threads.run(1, &|_, rank| placement.pin(rank))?;
        Ok(threads)
    }
}

// SAFETY: each thread of the region calls the part once in each step, with a barrier in between, and
// the region ends with one. A team of another size calls nothing, and is an error.
unsafe impl ForkJoin for OpenMpThreads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        let (threads, steps) = (c_int::try_from(self.threads)?, c_long::try_from(steps)?);
        let context = (&raw const part).cast_mut().cast();
        // SAFETY: the library is never unloaded. `context` points to the part, which outlives the
        // region, and the function calls `call_part` with it.
        let ran = unsafe { (self.run)(threads, steps, call_part, context) };
        ensure!(ran == threads, "OpenMP has {ran} threads instead of {threads}");
        Ok(())
    }
}

type CreateFn = unsafe extern "C" fn(c_int, c_uint) -> *mut c_void;
type WaitFn = unsafe extern "C" fn(*mut c_void, c_uint);

/// A barrier of a loaded library. It lives as long as the process.
pub(super) struct NativeBarrier {
    wait: WaitFn,
    barrier: NonNull<c_void>,
}

// SAFETY: the barriers are made for several threads; a thread uses only the state of its rank.
unsafe impl Send for NativeBarrier {}
// SAFETY: as above; `Barrier::wait` requires that no two threads use a rank at the same time.
unsafe impl Sync for NativeBarrier {}

impl NativeBarrier {
    /// Creates a barrier; `kind` is one of the library's.
    pub(super) fn new(placement: &ThreadPlacement, kind: c_int) -> Result<Self> {
        let library = load(placement)?;
        // SAFETY: the sources of barriers define the function with these arguments.
        let create = unsafe { library.get::<CreateFn>(b"fork_join_barrier")? };
        // SAFETY: as above.
        let wait = unsafe { library.get::<WaitFn>(b"fork_join_wait")? };
        // SAFETY: the function accepts any kind and number of threads.
        let barrier = unsafe { create(kind, c_uint::try_from(placement.threads)?) };
        let barrier = NonNull::new(barrier).context("the library has no such barrier")?;
        Ok(Self { wait: *wait, barrier })
    }
}

impl Barrier for NativeBarrier {
    unsafe fn wait(&self, rank: u32) {
        // SAFETY: the library and the barrier live as long as the process. The caller ensures that
        // the rank is below the number of threads, and used by one thread.
        unsafe { (self.wait)(self.barrier.as_ptr(), rank) }
    }
}
