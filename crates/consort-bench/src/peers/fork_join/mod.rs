//! Threads that run parallel regions: Consort's pool and other libraries, behind one trait.
//!
//! 1. `threads`: the trait;
//! 2. `pools`, `fork_union`: libraries that run regions;
//! 3. `barriers`: threads between two barriers, for libraries that have only these;
//! 4. `native`: libraries in C and C++, compiled here.

mod barriers;
mod fork_union;
mod native;
mod pools;
mod threads;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use consort::{Barrier as ConsortBarrier, Waiting};

#[cfg(target_os = "linux")]
use super::barriers::PthreadBarrier;
use super::barriers::{HurdlesBarrier, StdBarrier};
use barriers::Barriers;
pub use native::NativeLibrary;
use native::{NativeBarrier, NativeSource, OpenMpThreads};
use pools::{Chili, ConsortPool, Paralight, Rayon, Scope, Serial};
pub use threads::{ForkJoin, Part, ThreadPlacement};

/// A way to run regions, with the name by which a user selects it.
#[derive(Clone, Copy)]
pub struct Runtime {
    /// The name.
    pub name: &'static str,
    /// Whether it is Consort.
    pub is_ours: bool,
    /// Environment variables that its process needs.
    pub variables: &'static [(&'static str, &'static str)],
    source: Option<NativeSource>,
    create: Create,
}

impl Runtime {
    /// Compiles the library in C or C++ that this way needs, if it needs one that is not among
    /// `compiled`; `stop` interrupts this.
    ///
    /// # Errors
    /// When no compiler is installed, or the compiler does not find the library.
    pub fn compile(
        &self,
        compiled: &[NativeLibrary],
        stop: &AtomicBool,
    ) -> Result<Option<NativeLibrary>> {
        let missing = self.source.filter(|_| self.find_library(compiled).is_none());
        missing.map(|source| source.compile(stop)).transpose()
    }

    /// Returns the library that this way needs, if it is among `compiled`.
    pub fn find_library<'l>(&self, compiled: &'l [NativeLibrary]) -> Option<&'l NativeLibrary> {
        compiled.iter().find(|library| self.source.is_some_and(|source| library.is(source)))
    }

    /// Creates the threads.
    ///
    /// # Errors
    /// If the library cannot be used, or does not create this many threads.
    pub fn create(&self, placement: &ThreadPlacement) -> Result<Box<dyn ForkJoin>> {
        (self.create)(placement)
    }
}

/// All ways. The first one is Consort's default, with which the others are compared.
pub const RUNTIMES: &[Runtime] = &[
    ours("consort", |it| pool(it, Waiting::SpinYieldPark)),
    ours("consort-spin", |it| pool(it, Waiting::Spin)),
    ours("consort-yield", |it| pool(it, Waiting::SpinYield)),
    ours("consort-barrier", |it| barriers(it, ConsortBarrier::new(it.threads))),
    peer("fork_union", fork_union::create),
    peer("rayon", |it| Ok(Box::new(Rayon::new(it)?))),
    peer("chili", |it| Ok(Box::new(Chili::new(it)?))),
    peer("paralight", |it| Ok(Box::new(Paralight::new(it)?))),
    peer("std-scope", |it| Ok(Box::new(Scope(it.threads)))),
    peer("std-barrier", |it| barriers(it, StdBarrier::new(it.threads))),
    #[cfg(target_os = "linux")]
    peer("pthread", |it| barriers(it, PthreadBarrier::new(u32::try_from(it.threads)?))),
    peer("hurdles", |it| barriers(it, HurdlesBarrier::new(u32::try_from(it.threads)?))),
    openmp("libgomp", NativeSource::Gomp, &[]),
    openmp("libomp", NativeSource::Omp, &[]),
    openmp("libomp-hyper", NativeSource::Omp, &HYPER),
    openmp("libomp-dist", NativeSource::Omp, &DIST),
    native("cxx-barrier", NativeSource::Cxx, |it| barriers(it, NativeBarrier::new(it, 0)?)),
    native("ck-centralized", NativeSource::Ck, |it| barriers(it, NativeBarrier::new(it, 0)?)),
    native("ck-combining", NativeSource::Ck, |it| barriers(it, NativeBarrier::new(it, 1)?)),
    native("ck-dissemination", NativeSource::Ck, |it| barriers(it, NativeBarrier::new(it, 2)?)),
    native("ck-tournament", NativeSource::Ck, |it| barriers(it, NativeBarrier::new(it, 3)?)),
    native("ck-mcs", NativeSource::Ck, |it| barriers(it, NativeBarrier::new(it, 4)?)),
    peer("one-thread", |_| Ok(Box::new(Serial))),
];

/// LLVM's barriers: a tree whose branches are threads that share caches, and one for many cores.
const HYPER: [(&str, &str); 3] = patterns("hyper,hyper");
const DIST: [(&str, &str); 3] = patterns("dist,dist");

const fn patterns(pattern: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("KMP_PLAIN_BARRIER_PATTERN", pattern),
        ("KMP_FORKJOIN_BARRIER_PATTERN", pattern),
        ("KMP_REDUCTION_BARRIER_PATTERN", pattern),
    ]
}

type Create = fn(&ThreadPlacement) -> Result<Box<dyn ForkJoin>>;

const fn ours(name: &'static str, create: Create) -> Runtime {
    Runtime { is_ours: true, ..peer(name, create) }
}

const fn peer(name: &'static str, create: Create) -> Runtime {
    Runtime { name, is_ours: false, variables: &[], source: None, create }
}

const fn native(name: &'static str, source: NativeSource, create: Create) -> Runtime {
    Runtime { source: Some(source), ..peer(name, create) }
}

const fn openmp(
    name: &'static str,
    source: NativeSource,
    variables: &'static [(&'static str, &'static str)],
) -> Runtime {
    let create: Create = |it| Ok(Box::new(OpenMpThreads::new(it)?));
    Runtime { variables, ..native(name, source, create) }
}

fn pool(placement: &ThreadPlacement, waiting: Waiting) -> Result<Box<dyn ForkJoin>> {
    Ok(Box::new(ConsortPool::new(placement, waiting)?))
}

fn barriers<B>(placement: &ThreadPlacement, barrier: B) -> Result<Box<dyn ForkJoin>>
where
    B: super::barriers::Barrier + Send + 'static,
{
    Ok(Box::new(Barriers::new(placement, barrier)?))
}

/// Returns the way with this name.
pub fn runtime(name: &str) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| runtime.name == name)
}

/// One thread, the reference for results.
pub fn serial() -> Box<dyn ForkJoin> {
    Box::new(Serial)
}

/// Calls `check` with the name and the threads of each way that can be used here. Ways that differ
/// only in variables of their process are one.
#[cfg(test)]
pub(crate) fn with_each(threads: usize, check: impl Fn(&str, &mut dyn ForkJoin) + Sync) {
    let (mut compiled, never) = (Vec::new(), AtomicBool::new(false));
    for runtime in RUNTIMES.iter().filter(|runtime| runtime.variables.is_empty()) {
        let done = runtime.compile(&compiled, &never).and_then(|library| {
            compiled.extend(library);
            let found = runtime.find_library(&compiled);
            let compiled_library = found.map(|library| library.path().to_owned());
            let placement = ThreadPlacement { threads, cpus: None, compiled_library };
            // rayon makes the calling thread its own, which only a fresh thread allows.
            std::thread::scope(|scope| {
                let run = || runtime.create(&placement).map(|mut it| check(runtime.name, &mut *it));
                scope.spawn(run).join().expect("no panic")
            })
        });
        if let Err(why) = done {
            eprintln!("skipped: {}: {why:#}", runtime.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn steps_follow_each_other_and_call_each_rank_once() {
        let check = |name: &str, it: &mut dyn ForkJoin| {
            let threads = it.threads();
            for region in 0..50 {
                let (steps, calls) = (1 + region % 4, AtomicUsize::new(0));
                let seen: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
                it.run(steps, &|step, rank| {
                    let before = calls.fetch_add(1, Relaxed);
                    assert!((step * threads..(step + 1) * threads).contains(&before), "{name}");
                    seen[rank].fetch_add(1, Relaxed);
                })
                .unwrap();
                let seen: Vec<usize> = seen.into_iter().map(AtomicUsize::into_inner).collect();
                assert_eq!(seen, vec![steps; threads], "{name}");
            }
        };
        [1, 2, 3].into_iter().for_each(|threads| with_each(threads, check));
    }

    #[test]
    fn names_are_different_and_the_first_is_consort() {
        assert!(RUNTIMES[0].is_ours);
        for (index, one) in RUNTIMES.iter().enumerate() {
            let found = RUNTIMES.iter().position(|other| other.name == one.name);
            assert_eq!(found, Some(index), "{}", one.name);
        }
    }
}
