//! What an algorithm is, and how it is found by name.

use std::{borrow::Cow, future::Future};

use consort_fabric::{
    Candidate, Capabilities, Collective, Fabric, MachineModel, Mode, Op, OperatorClass, Query,
    Rank, Slot, Span, Sync,
};

use crate::{
    all_gather, all_gather_v, all_reduce, barrier, broadcast, exchange, exchange_v, gather,
    gather_v, reduce, reduce_scatter, scan, scatter, scatter_v,
};

/// A parameter of an algorithm and the values worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; a unit is part of it.
    pub name: &'static str,
    /// What the tuner tries.
    pub values: &'static [u64],
    /// The smallest and the largest value that make sense.
    pub range: (u64, u64),
}

/// Which way the data of an algorithm moves, which says what its messages tell of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the root: whoever has received knows that the root has entered.
    Down,
    /// To the root: when the root is done it knows that all have entered.
    Up,
    /// Neither.
    Neither,
}

/// What a schedule is made for: facts that all PEs of the team share, and the PE's rank.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The operation.
    pub collective: Collective,
    /// The PE that the schedule is for.
    pub rank: Rank,
    /// The size of the team.
    pub pes: u32,
    /// The root; 0 for an operation without.
    pub root: Rank,
    /// Bytes of a block.
    pub bytes: usize,
    /// Bytes of an element, which is never divided where elements are combined.
    pub element_bytes: usize,
    /// Of the operator.
    pub operator: OperatorClass,
    /// The caller's modes.
    pub sync: Sync,
    /// Whether the buffers are reached without asking.
    pub symmetric: bool,
    /// What the fabric can do.
    pub capabilities: Capabilities,
    /// The first slot of the inbox that the algorithm may use.
    pub first_slot: u32,
    /// Whether its signals go beside the first ones of their slots: a barrier's at entry.
    pub beside: bool,
    /// The counter that the algorithm may use.
    pub counter: u32,
}

impl Setting {
    /// The setting of a question to the tuner, for PE 0 as the root.
    #[must_use]
    pub fn of(query: &Query, capabilities: Capabilities) -> Self {
        Self {
            collective: query.collective,
            rank: Rank(0),
            pes: query.pes,
            root: Rank(0),
            bytes: usize::try_from(query.bytes).unwrap_or(usize::MAX),
            element_bytes: 8,
            operator: query.operator,
            sync: query.sync,
            symmetric: query.symmetric,
            capabilities,
            first_slot: Self::first_slot(query.collective, query.pes),
            beside: false,
            counter: 1,
        }
    }

    /// The question to the tuner that it answers.
    #[must_use]
    pub const fn query(&self) -> Query {
        Query {
            collective: self.collective,
            sync: self.sync,
            pes: self.pes,
            bytes: self.bytes as u64,
            operator: self.operator,
            symmetric: self.symmetric,
        }
    }

    /// The first slot for an operation's own messages. Slot 0 is for counting, and as many as there
    /// are PEs are for barriers alone.
    #[must_use]
    pub const fn first_slot(collective: Collective, pes: u32) -> u32 {
        if matches!(collective, Collective::Barrier) { 1 } else { 1 + pes }
    }

    /// The same for another PE.
    #[must_use]
    pub const fn at(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }

    /// Whether all that a PE contributes or receives has an address. Algorithms count up to twice
    /// as much.
    #[must_use]
    fn is_addressable(&self) -> bool {
        let all = self.bytes.checked_mul(2 * self.pes as usize);
        all.is_some_and(|all| isize::try_from(all).is_ok())
    }

    /// Whether the caller may leave while its buffers are still in use.
    #[must_use]
    pub fn leaves_early(&self) -> bool {
        self.symmetric && self.sync.exit == Mode::None
    }

    /// Slot number `index` of those that the algorithm may use.
    #[must_use]
    pub const fn slot(&self, index: u32) -> Slot {
        let slot = Slot::new(self.first_slot + index);
        if self.beside { slot.beside() } else { slot }
    }

    /// Lines that the algorithm may use.
    #[must_use]
    pub const fn lines(&self) -> u32 {
        self.capabilities.inbox_lines.saturating_sub(self.first_slot)
    }

    /// Block `index` of what a PE contributes.
    #[must_use]
    pub const fn source_block(&self, index: u32) -> Span {
        Span::source(index as usize * self.bytes, self.bytes)
    }

    /// Block `index` of what a PE receives.
    #[must_use]
    pub const fn target_block(&self, index: u32) -> Span {
        Span::target(index as usize * self.bytes, self.bytes)
    }
}

/// Why a candidate is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No algorithm has that name.
    #[error("{collective} has no algorithm `{name}`: there are {known}")]
    UnknownAlgorithm {
        /// The operation.
        collective: Collective,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter `{name}`: it has {known}")]
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A parameter's value is missing or out of range.
    #[error("{algorithm} needs {name} from {least} to {most}")]
    BadValue {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// The smallest that makes sense.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// The algorithm cannot serve this call.
    #[error("{algorithm} cannot serve this call: {why}")]
    Incapable {
        /// The algorithm.
        algorithm: &'static str,
        /// What it would need.
        why: Cow<'static, str>,
    },
}

/// An algorithm for a collective: a name, parameters, a schedule, a cost, and the protocol itself.
pub trait Algorithm: 'static {
    /// The name of its file.
    const NAME: &'static str;
    /// Whether data moves from the root, to it, or neither; see [`Direction`].
    const DIRECTION: Direction = Direction::Neither;
    /// Whether the root touches data of its own in no order with the messages: before the first of
    /// those that move up to it, or after the last of those that move down.
    const ROOT_ACTS_APART: bool = false;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
    /// What is worked out once for many calls: peers and slots.
    type Schedule: Send + std::marker::Sync + 'static;

    /// The schedule of one PE. Succeeds on all PEs of a team or on none.
    ///
    /// # Errors
    /// When the algorithm cannot serve the setting.
    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError>;

    /// Steps of a call, the same on all PEs: one more than the largest step it uses.
    fn steps(_: &Self::Schedule) -> u64 {
        1
    }

    /// What a call costs by the model, in nanoseconds: `Loose` ones in a row, others each alone.
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;

    /// The protocol.
    fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> impl Future<Output = Op>;

    /// The error for a call that it cannot serve.
    #[must_use]
    fn incapable(why: impl Into<Cow<'static, str>>) -> PlanError {
        PlanError::Incapable { algorithm: Self::NAME, why: why.into() }
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// When it is missing or out of range.
    fn parameter(candidate: &Candidate, index: usize) -> Result<u64, PlanError> {
        let Parameter { name, range: (least, most), .. } = Self::PARAMETERS[index];
        candidate
            .parameter(name)
            .filter(|value| (least..=most).contains(value))
            .ok_or(PlanError::BadValue { algorithm: Self::NAME, name, least, most })
    }

    /// Whether all parameters are known ones.
    ///
    /// # Errors
    /// When one is not.
    fn check_names(candidate: &Candidate) -> Result<(), PlanError> {
        let known = |name: &String| Self::PARAMETERS.iter().any(|known| known.name == name);
        match candidate.parameters.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => Err(PlanError::UnknownParameter {
                algorithm: Self::NAME,
                name: name.clone(),
                known: if Self::PARAMETERS.is_empty() {
                    "none".to_owned()
                } else {
                    let names: Vec<_> = Self::PARAMETERS.iter().map(|known| known.name).collect();
                    names.join(", ")
                },
            }),
        }
    }
}

/// Something to do with an algorithm that is known by name only.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<A: Algorithm>(self) -> Self::Output;
}

/// Makes a collective's registry of its algorithms' files.
macro_rules! registry {
    ($($file:ident: $algorithm:ident),* $(,)?) => {
        $(mod $file; pub use $file::$algorithm;)*

        /// The algorithms of this collective.
        pub const NAMES: &[&str] = &[$(<$algorithm as $crate::Algorithm>::NAME),*];

        /// Does something with the algorithm called `name`, if there is one.
        pub fn visit<V: $crate::Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $(<$algorithm as $crate::Algorithm>::NAME => {
                    Some(visitor.visit::<$algorithm>())
                })*
                _ => None,
            }
        }
    };
}
pub(crate) use registry;

/// The names of a collective's algorithms.
#[must_use]
pub const fn names(collective: Collective) -> &'static [&'static str] {
    match collective {
        Collective::Barrier => barrier::NAMES,
        Collective::Broadcast => broadcast::NAMES,
        Collective::Scatter => scatter::NAMES,
        Collective::Gather => gather::NAMES,
        Collective::AllGather => all_gather::NAMES,
        Collective::Exchange => exchange::NAMES,
        Collective::Reduce => reduce::NAMES,
        Collective::AllReduce => all_reduce::NAMES,
        Collective::ReduceScatter => reduce_scatter::NAMES,
        Collective::ScatterV => scatter_v::NAMES,
        Collective::GatherV => gather_v::NAMES,
        Collective::AllGatherV => all_gather_v::NAMES,
        Collective::ExchangeV => exchange_v::NAMES,
        Collective::Scan | Collective::ExclusiveScan => scan::NAMES,
    }
}

/// Does something with an algorithm.
///
/// # Errors
/// When there is none of that name.
pub fn visit<V: Visitor>(
    collective: Collective,
    name: &str,
    visitor: V,
) -> Result<V::Output, PlanError> {
    let found = match collective {
        Collective::Barrier => barrier::visit(name, visitor),
        Collective::Broadcast => broadcast::visit(name, visitor),
        Collective::Scatter => scatter::visit(name, visitor),
        Collective::Gather => gather::visit(name, visitor),
        Collective::AllGather => all_gather::visit(name, visitor),
        Collective::Exchange => exchange::visit(name, visitor),
        Collective::Reduce => reduce::visit(name, visitor),
        Collective::AllReduce => all_reduce::visit(name, visitor),
        Collective::ReduceScatter => reduce_scatter::visit(name, visitor),
        Collective::ScatterV => scatter_v::visit(name, visitor),
        Collective::GatherV => gather_v::visit(name, visitor),
        Collective::AllGatherV => all_gather_v::visit(name, visitor),
        Collective::ExchangeV => exchange_v::visit(name, visitor),
        Collective::Scan | Collective::ExclusiveScan => scan::visit(name, visitor),
    };
    found.ok_or_else(|| PlanError::UnknownAlgorithm {
        collective,
        name: name.to_owned(),
        known: names(collective).join(", "),
    })
}

/// Every candidate that can serve a query: all algorithms with all values worth trying.
#[must_use]
pub fn candidates(query: &Query, capabilities: Capabilities) -> Vec<Candidate> {
    struct Able<'q>(&'q Setting);
    impl Visitor for Able<'_> {
        type Output = Vec<Candidate>;
        fn visit<A: Algorithm>(self) -> Vec<Candidate> {
            let mut all = vec![Candidate::new(A::NAME)];
            for Parameter { name, values, .. } in A::PARAMETERS {
                let with = |candidate: &Candidate| {
                    values.iter().map(|&value| candidate.clone().with(name, value)).collect()
                };
                all = all.iter().flat_map(|candidate| -> Vec<_> { with(candidate) }).collect();
            }
            all.retain(|candidate| A::schedule(self.0, candidate).is_ok());
            all
        }
    }
    let setting = Setting::of(query, capabilities);
    if !setting.is_addressable() {
        return Vec::new();
    }
    names(query.collective)
        .iter()
        .filter_map(|name| visit(query.collective, name, Able(&setting)).ok())
        .flatten()
        .collect()
}

/// Whether a candidate can serve a setting, which is to say whether it has a schedule.
#[must_use]
pub fn serves(collective: Collective, setting: &Setting, candidate: &Candidate) -> bool {
    struct Try<'q>(&'q Setting, &'q Candidate);
    impl Visitor for Try<'_> {
        type Output = bool;
        fn visit<A: Algorithm>(self) -> bool {
            A::schedule(self.0, self.1).is_ok()
        }
    }
    setting.is_addressable()
        && visit(collective, &candidate.algorithm, Try(setting, candidate)).unwrap_or(false)
}

/// What a candidate costs by the model, in nanoseconds; infinite for one that is unknown.
#[must_use]
pub fn estimate_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
    struct Cost<'q>(&'q Query, &'q Candidate, &'q MachineModel);
    impl Visitor for Cost<'_> {
        type Output = f64;
        fn visit<A: Algorithm>(self) -> f64 {
            A::cost_ns(self.0, self.1, self.2)
        }
    }
    visit(query.collective, &candidate.algorithm, Cost(query, candidate, model))
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::{
        any::Any,
        time::{Duration, Instant},
    };

    use crate::patterns::rounds::{Program, play::kept};

    const CAPABILITIES: Capabilities = Capabilities {
        inbox_lines: 256,
        scratch_bytes: 16 << 10,
        buffer_bytes: 64 << 10,
        lending: true,
        buffered: true,
    };

    /// All collectives with blocks of a size among a few PEs.
    fn queries(bytes: u64) -> Vec<Query> {
        let mut all = Vec::new();
        for collective in Collective::EVERY {
            for pes in [2, 3, 8] {
                for operator in [OperatorClass::Commutative, OperatorClass::Ordered] {
                    for symmetric in [false, true] {
                        let sync = Sync::STRICT;
                        all.push(Query { collective, sync, pes, bytes, operator, symmetric });
                    }
                }
            }
        }
        all
    }

    /// How many rounds or operations a schedule keeps, if it is one of rounds.
    struct Kept<'s>(&'s Setting, &'s Candidate);

    impl Visitor for Kept<'_> {
        type Output = Option<usize>;

        fn visit<A: Algorithm>(self) -> Option<usize> {
            let schedule: Box<dyn Any> = Box::new(A::schedule(self.0, self.1).ok()?);
            schedule.downcast_ref::<Program>().map(kept)
        }
    }

    #[test]
    fn a_schedule_is_no_larger_for_more_bytes() {
        let kept_of = |query: &Query, candidate: &Candidate| {
            let setting = Setting::of(query, CAPABILITIES);
            visit(query.collective, &candidate.algorithm, Kept(&setting, candidate)).ok().flatten()
        };
        let mut compared = 0;
        for query in queries(1 << 20) {
            for candidate in candidates(&query, CAPABILITIES) {
                let Some(least) = kept_of(&query, &candidate) else { continue };
                for bytes in [1 << 30, (1 << 30) + 8, 1 << 40] {
                    let longer = Query { bytes, ..query };
                    let Some(kept) = kept_of(&longer, &candidate) else { continue };
                    // The last piece of a block may be shorter, and then has rounds of its own.
                    assert!(kept <= 2 * least, "{candidate} {longer:?}: {kept}, and {least}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{compared} schedules are of rounds");
    }

    #[test]
    fn choosing_takes_no_longer_for_more_bytes() {
        let model = MachineModel::typical(8);
        let took = |bytes| {
            let once = || {
                let begun = Instant::now();
                for query in queries(bytes) {
                    for candidate in candidates(&query, CAPABILITIES) {
                        assert!(estimate_ns(&query, &candidate, &model).is_finite());
                    }
                }
                begun.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap_or_default()
        };
        let least = took(1 << 20);
        for bytes in [1 << 30, (1 << 30) + 8, 1 << 40] {
            let longer = took(bytes);
            // Generous, for other tests run meanwhile: it was hundreds of times as long.
            let limit = 10 * least + Duration::from_millis(100);
            assert!(longer < limit, "{bytes} B take {longer:?}, and 1 MiB {least:?}");
        }
    }

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        for bytes in [(1 << 52) - 1, u64::MAX / 2, u64::MAX] {
            for query in queries(bytes) {
                let query = Query { pes: 1 << 20, ..query };
                assert_eq!(candidates(&query, CAPABILITIES), [], "{query:?}");
                let setting = Setting::of(&query, CAPABILITIES);
                let direct = Candidate::new("direct");
                assert!(!serves(query.collective, &setting, &direct), "{query:?}");
            }
        }
    }

    /// An algorithm may refuse them, but not miscount, and something serves each collective.
    #[test]
    fn there_is_a_schedule_for_gigabytes() {
        for collective in Collective::EVERY {
            for (pes, sync) in
                [2, 3].into_iter().flat_map(|pes| Sync::every().map(move |s| (pes, s)))
            {
                let (bytes, operator) = (5 << 30 | 8, OperatorClass::Ordered);
                let query = Query { collective, sync, pes, bytes, operator, symmetric: false };
                let all = candidates(&query, CAPABILITIES);
                assert!(!all.is_empty(), "{collective} {sync} on {pes} PEs");
            }
        }
    }
}
