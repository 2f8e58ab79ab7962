//! Makes a job fail in forked children.
//!
//! A child has a copy of the job but none of its PEs: it has only the thread that called `fork`. A
//! call in the child must return an error instead of waiting forever, and the parent's job must
//! continue. Therefore, in the child:
//!
//! 1. Memory that other processes share becomes a private copy of the child.
//! 2. The flags of PEs that were copying exposed memory are cleared.
//! 3. The job fails with [`Failure::Forked`](super::failure::Failure::Forked).
//!
//! Calls check the failure flag anyway, so this costs them nothing.

#![expect(unsafe_code, reason = "accesses all jobs in a forked child")]

use std::sync::{Arc, Once};

use super::reason;
use crate::{
    roster::{Entry, Roster},
    segment::{
        reservation::Segment,
        shared,
        slice::{SegmentRef, SegmentSlice},
    },
    state::{
        access_flag::AccessFlag,
        header::{Header, PeState},
    },
};
use consort_machine::system::fork;

/// The parts of a job that a child changes.
struct JobFlags {
    header: SegmentRef<Header>,
    states: SegmentSlice<PeState>,
}

static JOBS: Roster<JobFlags> = Roster::new();

/// A job that will fail in forked children, until this is dropped.
pub(super) struct ChildFailure {
    _entry: Entry<JobFlags>,
}

impl ChildFailure {
    /// Registers the job of a segment: its header, and the states of its PEs from offset `states`
    /// on.
    pub(super) fn new(segment: &Arc<Segment>, states: usize, pes: usize) -> Self {
        static REGISTERED: Once = Once::new();
        fork::in_children_once(&REGISTERED, fail_all);
        let header = SegmentRef::new(segment, 0);
        Self {
            _entry: JOBS
                .enter(JobFlags { header, states: SegmentSlice::new(segment, states, pes) }),
        }
    }
}

/// Fails all jobs in a child that has just been forked.
fn fail_all() {
    shared::copy_all();
    // SAFETY: this is the child's only thread, and it drops nothing here.
    for JobFlags { header, states } in unsafe { JOBS.all() } {
        states.iter().flat_map(|state| &state.access_flags).for_each(AccessFlag::forget);
        header.poison.claim_alone(reason::FORKED);
    }
}
