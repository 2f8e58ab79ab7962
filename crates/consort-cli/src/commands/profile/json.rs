//! The profile of a job as JSON.

use serde::Serialize;

use super::{
    joined::{computing_ns, in_calls_ns, total_ns, waiting_ns},
    tuning::{AdvisedJob, Tuning},
};

/// A job. Times are nanoseconds.
#[derive(Serialize)]
pub(super) struct JobRecord<'j> {
    name: &'j str,
    /// The number of jobs that are added up, because they are alike.
    jobs: usize,
    fabric: &'j str,
    pes: u32,
    /// The ranks whose process ended before the job did: their last calls are missing.
    incomplete: Vec<u32>,
    by_pe: Vec<PeRecord>,
    calls: Vec<CallRecord<'j>>,
}

/// A PE. Its time is the sum of computing, in calls and waiting elsewhere.
#[derive(Serialize)]
struct PeRecord {
    pe: u32,
    ns: u64,
    computing_ns: u64,
    in_calls_ns: u64,
    waiting_ns: u64,
    waiting_elsewhere_ns: u64,
    paused: u64,
    polls: u64,
    yields: u64,
    sleeps: u64,
    yielding_ns: u64,
    sleeping_ns: u64,
}

/// The calls of one kind from one place.
#[derive(Serialize)]
struct CallRecord<'j> {
    call: &'j str,
    at: &'j str,
    collective: String,
    bytes: u64,
    team_pes: u32,
    algorithm: String,
    /// `program`, `wisdom`, `model` or `refinement`; absent for calls that the library makes.
    chosen_by: Option<&'static str>,
    blocking: bool,
    /// The calls of the PE with the most.
    calls: u64,
    longest_ns: u64,
    by_pe: Vec<CallTimes>,
    #[serde(flatten)]
    tuning: &'j Tuning,
}

#[derive(Serialize)]
struct CallTimes {
    pe: u32,
    ns: u64,
    waiting_ns: u64,
}

impl<'j> JobRecord<'j> {
    /// Returns the record of a job.
    pub(super) fn of(AdvisedJob { job, tuning }: &'j AdvisedJob) -> Self {
        let first = job.pes.first();
        let by_pe = job.pes.iter().map(|pe| PeRecord {
            pe: pe.rank,
            ns: total_ns(pe),
            computing_ns: computing_ns(pe),
            in_calls_ns: in_calls_ns(pe),
            waiting_ns: waiting_ns(pe),
            waiting_elsewhere_ns: pe.waiting_elsewhere_ns,
            paused: pe.paused,
            polls: pe.polls,
            yields: pe.yields,
            sleeps: pe.sleeps,
            yielding_ns: pe.yielding_ns,
            sleeping_ns: pe.sleeping_ns,
        });
        let calls = job.calls.iter().zip(tuning).map(|(call, tuning)| CallRecord {
            call: &call.all.name,
            at: &call.all.site,
            collective: call.all.query.collective.to_string(),
            bytes: call.all.query.bytes,
            team_pes: call.all.query.pes,
            algorithm: call.all.algorithm.to_string(),
            chosen_by: call.all.origin.map(|origin| origin.name()),
            blocking: call.all.is_blocking,
            calls: call.count,
            longest_ns: call.all.longest_ns,
            by_pe: call
                .times
                .iter()
                .map(|&(pe, ns, waiting_ns)| CallTimes { pe, ns, waiting_ns })
                .collect(),
            tuning,
        });
        Self {
            name: first.map_or("", |pe| &pe.name),
            jobs: job.jobs,
            fabric: first.map_or("", |pe| &pe.fabric),
            pes: first.map_or(0, |pe| pe.pes),
            incomplete: job.incomplete(),
            by_pe: by_pe.collect(),
            calls: calls.collect(),
        }
    }
}
