//! A program: the actions of all PEs, step by step, as data that every PE can read.
//!
//! Teams are stored in *slots*. A slot holds the teams that one step has formed. They are disjoint:
//! each of them executes the steps that name the slot, and no other PE does. So all PEs can follow
//! one order of steps.

use std::fmt;

use consort::{
    Rank, Waiting,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_fabric::Nodes;

use super::{
    elements::Type,
    groups::{Division, Groups},
};

/// The launch, and the steps of all PEs.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) seed: u64,
    pub(super) pes: u32,
    pub(super) waiting: Option<Waiting>,
    pub(super) helpers: bool,
    pub(super) online: bool,
    pub(super) heap_bytes: usize,
    pub(super) forced: Vec<(Collective, Candidate)>,
    /// The placement of the PEs on processes and on nodes, if they are on several.
    pub(super) forms: Option<[Nodes; 2]>,
    /// The teams of each slot; the world is slot 0.
    pub(super) slots: Vec<Groups>,
    pub(super) steps: Vec<Step>,
}

/// The next action of all PEs of some teams.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// All PEs enter a barrier, and then check their symmetric memory.
    Barrier,
    /// Write the caller's own part of a block.
    Refill {
        block: usize,
        seed: u64,
    },
    Force {
        slot: usize,
        collective: Collective,
        candidate: Option<Candidate>,
    },
    /// Form the teams of a slot, or of two, from each team of another.
    Divide {
        parent: usize,
        division: Division,
        slot: usize,
    },
    Free {
        slot: usize,
    },
    /// Four blocks starting at number `block`: two of `len` elements, and two of `len` for each PE.
    Allocate {
        slot: usize,
        block: usize,
        ty: Type,
        len: usize,
    },
    /// Drop a block.
    Give {
        block: usize,
        gift: Gift,
    },
    Call(Call),
    /// Start a call, and keep its request.
    Start {
        call: Call,
        request: usize,
    },
    Finish {
        request: usize,
        end: End,
    },
    Overlap {
        calls: Vec<Call>,
        ends: Vec<End>,
        barrier: bool,
    },
    Scene {
        slot: usize,
        scene: Scene,
        seed: u64,
    },
}

/// One call of a collective.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) slot: usize,
    pub(super) collective: Collective,
    pub(super) sync: SyncModes,
    /// The root's rank, modulo the team's size.
    pub(super) root: u32,
    pub(super) ty: Type,
    /// Whether it combines by a closure.
    pub(super) ordered: bool,
    /// The number of elements of a block.
    pub(super) len: usize,
    pub(super) seed: u64,
    /// Whether the blocks of a vector variant differ.
    pub(super) uneven: bool,
    pub(super) form: Form,
}

/// The method by which a call is made, and its kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Single elements, or the result of a vector variant.
    Values,
    Slices,
    InPlace,
    /// `slices` and `any`.
    Generic,
    Memory {
        from: usize,
        to: usize,
    },
    /// `in_symmetric` and `any`.
    GenericMemory {
        from: usize,
        to: usize,
    },
    /// `start`.
    Owned,
    /// `plan`, started once before the call itself.
    Planned,
    /// `start_symmetric`.
    StartMemory {
        from: usize,
        to: usize,
    },
    /// `start_into` of a scope.
    Scoped,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Wait,
    Test,
    Await,
    Drop,
    Forget,
}

/// The way in which symmetric memory is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gift {
    Drop,
    /// Every second PE drops it only at the next barrier.
    Staggered,
    Forget,
}

/// Several operations that allocate their own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// Put to the right between barriers, and get from the left.
    Puts,
    /// Put with signal to the right, and wait for the signal.
    Signals,
    /// Add to a word of one PE, and to one of each.
    Atomics,
    /// Counting puts to all, and counting gets.
    Counted,
    /// Broadcast asynchronously from several PEs.
    AsyncBroadcast,
    /// Allocate and drop more than half of the heap, several times.
    Churn,
    /// One kind of call many times, from two call sites.
    Repeat,
    /// As many nonblocking calls as the window has room for, and more.
    Burst,
    /// Messages from each PE to others.
    Messages,
}

impl Scene {
    pub(super) const EVERY: [Self; 9] = [
        Self::Puts,
        Self::Signals,
        Self::Atomics,
        Self::Counted,
        Self::AsyncBroadcast,
        Self::Churn,
        Self::Repeat,
        Self::Burst,
        Self::Messages,
    ];
}

impl Step {
    /// Returns the slot whose teams make the step.
    pub(super) fn slot(&self) -> Option<usize> {
        match self {
            Self::Barrier => Some(0),
            Self::Force { slot, .. }
            | Self::Free { slot }
            | Self::Allocate { slot, .. }
            | Self::Scene { slot, .. } => Some(*slot),
            Self::Divide { parent, .. } => Some(*parent),
            Self::Call(call) | Self::Start { call, .. } => Some(call.slot),
            Self::Overlap { calls, .. } => Some(calls[0].slot),
            Self::Refill { .. } | Self::Give { .. } | Self::Finish { .. } => None,
        }
    }
}

impl Call {
    /// Returns the root in a team of `size` PEs.
    pub(super) fn root_of(&self, size: usize) -> usize {
        self.root as usize % size
    }

    /// As [`Call::root_of`], for the library.
    pub(super) fn root_rank(&self, size: usize) -> Rank {
        Rank(u32::try_from(self.root_of(size)).expect("a rank"))
    }

    /// Returns the symmetric memory that it uses, if any.
    pub(super) fn memory(&self) -> Option<(usize, usize)> {
        match self.form {
            Form::Memory { from, to }
            | Form::GenericMemory { from, to }
            | Form::StartMemory { from, to } => Some((from, to)),
            _ => None,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot, collective, sync, root, ty, len, form, .. } = self;
        write!(f, "teams {slot}: {collective} of {len} {ty:?}, {sync}, {form:?}")?;
        if collective.is_rooted() {
            write!(f, ", root {root}")?;
        }
        if collective.combines() {
            f.write_str(if self.ordered { ", a closure" } else { ", commutative" })?;
        }
        if self.uneven { f.write_str(", uneven") } else { Ok(()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "{call}"),
            Self::Start { call, request } => write!(f, "request {request} = {call}"),
            Self::Force { slot, collective, candidate: Some(candidate) } => {
                write!(f, "teams {slot}: {collective} by {candidate}")
            }
            Self::Force { slot, collective, candidate: None } => {
                write!(f, "teams {slot}: {collective} by the chosen algorithm")
            }
            Self::Overlap { calls, ends, barrier } => {
                f.write_str("overlap")?;
                for (call, end) in calls.iter().zip(ends) {
                    write!(f, "\n        {call}; then {end:?}")?;
                }
                if *barrier { f.write_str("\n        with a barrier between") } else { Ok(()) }
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pes, waiting, helpers, online, heap_bytes, .. } = self;
        writeln!(
            f,
            "{pes} PEs, waiting {waiting:?}, helpers {helpers}, online {online}, {heap_bytes} \
             bytes of heap"
        )?;
        if let Some([processes, nodes]) = self.forms {
            writeln!(f, "on processes by {processes:?}, on nodes by {nodes:?}")?;
        }
        for (collective, candidate) in &self.forced {
            writeln!(f, "{collective} by {candidate}")?;
        }
        for (slot, groups) in self.slots.iter().enumerate() {
            writeln!(f, "teams {slot}: {groups:?}")?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{number:4}  {step}")?;
        }
        Ok(())
    }
}
