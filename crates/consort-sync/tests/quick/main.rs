//! Tests of locks and delegation on this machine and on simulated ones, one module per subject.
#![cfg(not(loom))]

use consort_sandbox as _;

mod condvars;
mod continuations;
mod delegation;
mod detached;
mod fallback_server;
mod features;
mod first_lines;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod forks;
mod linearizable;
mod locks;
mod many_threads;
mod objects;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod plugins;
mod random;
mod random_delegates;
mod reentrant;
mod rw_locks;
mod schemes;
mod semaphores;
mod simulated;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod thread_ends;
mod trusts;
