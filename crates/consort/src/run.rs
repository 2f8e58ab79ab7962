//! Runs a program on new threads, one for each PE, or on this process's only PE. Reads the
//! environment's settings of PEs and their shared memory.

use std::{sync::Arc, thread};

use consort_fabric::{Rank, environment};
use consort_machine::{advice::of_thread, limits::counts_unused_memory, threads::ManyThreadStart};
use consort_native::{Failure, Origin, default_heap_bytes, heap_bytes_of};

use crate::{
    Error,
    error::{ConfigError, LaunchError},
    fabric::{ProcessShape, Sharing},
    pe::Ending,
    ranks::{Ranks, failed_by, started},
    results::{Failed, Program},
};

/// Runs a program on all PEs, and waits until it has ended on all. There are several `parts` if PEs
/// of one process share no memory.
pub(crate) fn launch(parts: &[Arc<Ranks>], program: &Program<'_>) -> Result<(), Failed> {
    if let [ranks] = parts {
        return match ranks.job.own() {
            Some(rank) => run_own(ranks, rank, program),
            None => run_threads(ranks, program),
        };
    }
    thread::scope(|scope| {
        let parts = parts.iter().map(|ranks| scope.spawn(|| run_threads(ranks, program)));
        let parts: Vec<_> = parts.collect();
        let ended = parts.into_iter().map(|part| part.join().expect("it catches panics"));
        // Wait for all parts. The cause of a failure is the same in all of them.
        ended.fold(Ok(()), Result::and)
    })
}

/// Runs the program on this process's only PE.
fn run_own(ranks: &Arc<Ranks>, rank: Rank, program: &Program<'_>) -> Result<(), Failed> {
    ranks.settle(rank);
    match ranks.run(rank, program, Ending::Checks) {
        Err(error) => Err(ranks.first_cause(vec![(rank, error)])),
        Ok(_) if ranks.job.is_poisoned() => Err(ranks.first_cause(Vec::new())),
        Ok(_) => {
            ranks.job.end();
            ranks.job.await_end();
            if ranks.job.is_poisoned() { Err(ranks.first_cause(Vec::new())) } else { Ok(()) }
        }
    }
}

/// Starts one thread for each PE.
fn run_threads(ranks: &Arc<Ranks>, program: &Program<'_>) -> Result<(), Failed> {
    let job = &ranks.job;
    thread::scope(|scope| {
        let (mut handles, mut errors) = (Vec::new(), Vec::new());
        let starting = ManyThreadStart::of(ranks.here().count()).map_err(|error| of_thread(&error));
        for rank in ranks.here() {
            let body = move || {
                ranks.settle(rank);
                ranks.run(rank, program, Ending::Checks)
            };
            let name = job.config().thread_name(rank);
            let started = match &starting {
                Ok(_) => started(name, |named| named.spawn_scoped(scope, body)),
                Err(reason) => Err(reason.clone()),
            };
            match started {
                Ok(handle) => handles.push((rank, handle)),
                Err(reason) => {
                    let failure = format!("did not start: {reason}");
                    job.poison(&Failure::Pe { rank, reason: failure });
                    errors.push((rank, Error::Launch(LaunchError::Thread { rank, reason })));
                    break;
                }
            }
        }
        drop(starting);
        for (rank, handle) in handles {
            let ended = handle.join().unwrap_or_else(|panic| Err(failed_by(job, rank, panic)));
            errors.extend(ended.err().map(|error| (rank, error)));
        }
        job.end();
        job.await_end();
        // A program may have ignored the error of its last call.
        let is_sound = errors.is_empty() && !job.is_poisoned();
        if is_sound { Ok(()) } else { Err(ranks.first_cause(errors)) }
    })
}

/// Returns the value of an environment variable. Text that is not Unicode is never a valid value
/// here, and neither is its lossy conversion.
fn variable(name: &str) -> Option<String> {
    environment::variable(name).map(|text| text.to_string_lossy().into_owned())
}

/// The environment variable that selects the origin of the memory that PEs share.
const SEGMENT: &str = "CONSORT_SEGMENT";

/// Returns the origin set by `CONSORT_SEGMENT`. If it is not set: memory of this process, or shared
/// memory if the system counts private memory that is mapped but unused, because heaps are large
/// and programs use only a part of them.
pub(crate) fn memory_of_environment() -> Result<Origin, Error> {
    match variable(SEGMENT) {
        Some(text) => Origin::of_name(&text).ok_or_else(|| {
            let names = Origin::EVERY.map(Origin::name).join(" or ");
            ConfigError::new(SEGMENT, text, names).into()
        }),
        None if counts_unused_memory() => Ok(Origin::Shared),
        None => Ok(Origin::Private),
    }
}

/// The environment variable for the symmetric memory of each PE, in bytes.
const HEAP: &str = "CONSORT_HEAP_BYTES";

/// Returns the bytes of symmetric memory of each of `pes` PEs, from the environment.
pub(crate) fn heap_bytes_of_environment(pes: u32) -> Result<usize, Error> {
    let Some(text) = variable(HEAP) else { return Ok(default_heap_bytes(pes)) };
    Ok(heap_bytes_of(HEAP, &text)?)
}

/// The environment variable for the number of PEs.
const PES: &str = "CONSORT_PES";

/// Returns the number of PEs set by `CONSORT_PES`, if it is set.
pub(crate) fn pes_of_environment() -> Result<Option<u32>, Error> {
    let Some(text) = variable(PES) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| no_number(PES, text))
}

/// Returns the error of a variable whose value is not a number of PEs.
fn no_number(variable: &'static str, value: String) -> Error {
    ConfigError::new(variable, value, format!("a number of PEs, as in {variable}=4")).into()
}

/// The environment variable for the number of PEs of each process that an MPI starts.
const EACH: &str = "CONSORT_PES_PER_PROCESS";

/// Returns the number of PEs of each process that an MPI starts; one if the environment sets none.
fn each_of_environment() -> Result<usize, Error> {
    let Some(text) = variable(EACH) else { return Ok(1) };
    let each = text.trim().parse().ok().filter(|&each| each > 0);
    each.ok_or_else(|| no_number(EACH, text))
}

/// The environment variable for which processes of an MPI share memory.
const SHARING: &str = "CONSORT_SHARING";

/// Returns which of an MPI's processes share memory, from the environment.
pub(crate) fn sharing_of_environment() -> Result<Sharing, Error> {
    match variable(SHARING).as_deref() {
        None | Some("machine") => Ok(Sharing::Machine),
        Some("process") => Ok(Sharing::Process),
        Some(text) => Err(ConfigError::new(SHARING, text, "machine or process").into()),
    }
}

/// Returns the placement of PEs on an MPI's processes, from the environment.
pub(crate) fn shape_of_environment() -> Result<ProcessShape, Error> {
    Ok(ProcessShape { pes_each: each_of_environment()?, in_turn: deals_in_turn()? })
}

/// The environment variable for the placement of PEs on an MPI's processes.
const PLACEMENT: &str = "CONSORT_PLACEMENT";

/// Returns whether PEs are dealt to the processes in turn, instead of in consecutive blocks.
fn deals_in_turn() -> Result<bool, Error> {
    match variable(PLACEMENT).as_deref() {
        None | Some("blocks") => Ok(false),
        Some("in-turn") => Ok(true),
        Some(text) => Err(ConfigError::new(PLACEMENT, text, "blocks or in-turn").into()),
    }
}
