//! Runs a program on every PE, on any fabric.
//!
//! A PE uses its buffers as its modes allow, and as early as they allow it: it checks them until it
//! enters a call, unless the entry mode is None, and overwrites them when it leaves, unless the
//! exit mode is None. If the entry mode is All, there are no contributions until the last PE to
//! enter brings all of them; if the exit mode is All, the first PE to leave checks all results. One
//! PE is late once, and others may run ahead of it. A barrier ends every program; all data must be
//! correct after it.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use consort_fabric::{Rank, SyncMode};

use crate::{
    Case, Program, Side,
    data::{BLANK, SPENT},
};

/// One PE of a fabric under test.
pub trait Member {
    /// Whether nothing else happens between two waits: then the first PE to leave a call can check
    /// all PEs' data, before they continue.
    const ALONE_BETWEEN_WAITS: bool;

    /// Returns its rank.
    fn rank(&self) -> Rank;

    /// Copies a buffer of a call out of a PE's symmetric memory.
    fn read(&self, of: Rank, call: usize, side: Side) -> Vec<u8>;

    /// Writes a buffer of a call in a PE's symmetric memory.
    fn write(&self, of: Rank, call: usize, side: Side, data: &[u8]);

    /// Waits until all PEs are here, by other means than those under test.
    fn align(&self) -> impl Future<Output = ()>;

    /// Lets other PEs run ahead.
    fn be_late(&self) -> impl Future<Output = ()>;

    /// Makes a call, on private buffers if given; returns the content of the private target.
    fn call(
        &mut self,
        call: usize,
        case: &Case,
        private: Option<[Vec<u8>; 2]>,
    ) -> impl Future<Output = Vec<u8>>;
}

/// The progress of the PEs in a program, tracked by other means than those under test.
pub trait Progress {
    /// Records that a PE enters a call; returns whether it is the last of `pes`. The earlier
    /// actions of the others happen before the last PE's next ones.
    fn enter(&self, call: usize, pes: u32) -> bool;

    /// Returns whether all have entered it.
    fn all_have_entered(&self, call: usize, pes: u32) -> bool;

    /// Records that a PE has left it; returns whether it is the first.
    fn leave(&self, call: usize) -> bool;
}

/// Progress of PEs of this process.
#[derive(Debug)]
pub struct Counts {
    /// The number of PEs that have entered each call.
    entered: Vec<AtomicU32>,
    /// Whether a PE has left it.
    left: Vec<AtomicBool>,
}

impl Counts {
    /// Returns the progress of a program that nobody has begun.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let calls = || program.cases.iter();
        Self {
            entered: calls().map(|_| AtomicU32::new(0)).collect(),
            left: calls().map(|_| AtomicBool::new(false)).collect(),
        }
    }
}

impl Progress for Counts {
    fn enter(&self, call: usize, pes: u32) -> bool {
        self.entered[call].fetch_add(1, Ordering::AcqRel) + 1 == pes
    }

    fn all_have_entered(&self, call: usize, pes: u32) -> bool {
        self.entered[call].load(Ordering::Relaxed) == pes
    }

    fn leave(&self, call: usize) -> bool {
        !self.left[call].swap(true, Ordering::Relaxed)
    }
}

/// Runs a program as one of its PEs.
///
/// # Panics
/// When the PE's data differs from the oracle's.
pub async fn run<M: Member>(member: &mut M, program: &Program, progress: &impl Progress) {
    let me = member.rank();
    for call in symmetric(program) {
        let [source, target] = program.at_first(call, me);
        member.write(me, call, Side::Source, &source);
        member.write(me, call, Side::Target, &target);
    }
    member.align().await;
    for (call, case) in program.cases.iter().enumerate() {
        if case.symmetric && case.sync.entry != SyncMode::None {
            let [source, target] = program.at_first(call, me);
            let same = member.read(me, call, Side::Source) == source
                && member.read(me, call, Side::Target) == target;
            assert!(same, "PE {me} has other data before call {call}: {case}");
        }
        if program.is_late(call, me) {
            member.be_late().await;
        }
        if progress.enter(call, program.pes) && program.is_brought(call) {
            bring(member, program, call);
        }
        let private = (!case.symmetric).then(|| program.private(call, me));
        let received = member.call(call, case, private).await;
        check_others(member, program, progress, call);
        if case.symmetric {
            settle(member, program, call);
        } else if program.receives(call, me) {
            assert!(
                received == program.after(call, me),
                "PE {me} received something else in call {call}: {case}"
            );
        }
    }
    for call in symmetric(program) {
        let case = &program.cases[call];
        let mut expected = program.after(call, me);
        if case.sync.exit != SyncMode::None {
            expected.fill(SPENT);
        }
        let same = member.read(me, call, Side::Target) == expected;
        assert!(same, "PE {me} has other data at the end: call {call}, {case}");
    }
}

/// Returns the calls on symmetric memory.
fn symmetric(program: &Program) -> impl Iterator<Item = usize> {
    (0..program.cases.len()).filter(|&call| program.cases[call].symmetric)
}

/// Checks, as the last PE to enter, that nothing has moved, and brings all contributions.
fn bring<M: Member>(member: &M, program: &Program, call: usize) {
    let case = &program.cases[call];
    for peer in program.everyone() {
        let target = member.read(peer, call, Side::Target);
        let same = target.iter().all(|&byte| byte == BLANK);
        assert!(same, "PE {peer} has data before all are in call {call}: {case}");
        let [source, _] = program.before(call, peer);
        member.write(peer, call, Side::Source, &source);
    }
}

/// Checks what a PE that leaves a call knows about the others, by its modes.
fn check_others<M: Member>(member: &M, program: &Program, progress: &impl Progress, call: usize) {
    let (me, case) = (member.rank(), &program.cases[call]);
    let sync = case.sync;
    // Nothing moves before all have entered, or nobody leaves before that.
    let has_data = program.receives(call, me) && sync.exit != SyncMode::None;
    if sync.exit == SyncMode::All || sync.entry == SyncMode::All && has_data {
        let all = progress.all_have_entered(call, program.pes);
        assert!(all, "PE {me} has left call {call} before all entered: {case}");
    }
    let is_first = progress.leave(call);
    if M::ALONE_BETWEEN_WAITS && is_first && case.symmetric && sync.exit == SyncMode::All {
        for peer in program.everyone() {
            let same = member.read(peer, call, Side::Target) == program.after(call, peer);
            assert!(same, "PE {me} left call {call} before PE {peer} had all: {case}");
        }
    }
}

/// Checks and overwrites the PE's own symmetric buffers, if they are settled.
fn settle<M: Member>(member: &M, program: &Program, call: usize) {
    let (me, case) = (member.rank(), &program.cases[call]);
    if case.sync.exit == SyncMode::None {
        return;
    }
    let expected = program.after(call, me);
    let same = member.read(me, call, Side::Target) == expected;
    assert!(same, "PE {me} has other data after call {call}: {case}");
    let [source, target] = program.before(call, me).map(|buffer| vec![SPENT; buffer.len()]);
    member.write(me, call, Side::Source, &source);
    member.write(me, call, Side::Target, &target);
}
